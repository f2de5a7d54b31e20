"""The signature as the only list of options."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import InputError, OptionError
from repcap.options import (
    BlockRows,
    Dtype,
    ExcludeIds,
    Option,
    Seed,
    Z,
    as_ids,
    check,
    check_options,
    chosen,
    defaults,
    key_options,
    parameters,
    parse_ids,
    recorded,
    verb,
    verb_over,
)
from repcap.result import Result


def work(
    source: Any,
    *,
    z: Z = 2.0,
    seed: Seed = 0,
    dtype: Dtype = "float32",
    block_rows: BlockRows = None,
    exclude_ids: ExcludeIds = (),
    weights: Annotated[Iterable[float], Option("Weights.", least=0.0)] = (),
    order: Annotated[int | str, Option("auto or a number.")] = "auto",
    on_progress: Any = None,
) -> dict[str, Any]:
    return dict(locals())


def test_only_what_carries_an_option_is_one():
    names = ["z", "seed", "dtype", "block_rows", "exclude_ids", "weights", "order"]
    assert list(parameters(work)) == names
    assert not parameters(work)["z"].required
    assert parameters(work)["block_rows"].optional
    assert defaults(work)["dtype"] == "float32"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"z": "2"}, "z = 2: give a finite number"),
        ({"z": math.nan}, "z = nan: give a finite number"),
        ({"z": -1}, "z = -1.0: give a finite z >= 0"),
        ({"z": None}, "z = None: give a finite number"),
        ({"seed": -1}, r"seed = -1: give a whole number in 0\.\.2\^63 - 1"),
        ({"seed": 1.0}, "seed = 1.0: give a whole number"),
        ({"seed": True}, "seed = True: give a whole number"),
        ({"dtype": "float16"}, "dtype = float16: use float32, float64"),
        ({"block_rows": 0}, "block_rows = 0: a block holds one or more"),
        ({"exclude_ids": 3}, "exclude_ids = 3: give a list of whole numbers"),
        ({"exclude_ids": "3"}, "exclude_ids = 3: give a list of whole numbers"),
        ({"weights": [1.0, -1.0]}, "weights = -1.0: give at least 0"),
        ({"order": 1.5}, "order = 1.5: give a whole number or text"),
    ],
)
def test_what_means_nothing_is_refused_by_name(given, message):
    with pytest.raises(OptionError, match=message):
        check(work, given)


def test_numbers_of_other_libraries_become_plain():
    found = check(work, {"z": np.float32(1.5), "seed": np.int16(7), "exclude_ids": np.array([3, 1])})
    assert found == {"z": 1.5, "seed": 7, "exclude_ids": (3, 1)}
    assert [type(value) for value in found.values()] == [float, int, tuple]
    assert check(work, {"source": object, "order": 8, "block_rows": None})["order"] == 8


def test_a_list_says_where_and_the_near_name():
    with pytest.raises(InputError, match=r"models.yaml, model 2: unknown option sed; did you mean seed"):
        check_options(work, {"sed": 1}, "models.yaml, model 2")
    with pytest.raises(InputError, match="here: z = True: give a finite number"):
        check_options(work, {"z": True}, "here")


def test_a_key_forgets_defaults_and_what_changes_no_number():
    assert key_options(work, {"z": 2, "seed": 0, "block_rows": 9, "exclude_ids": []}) == {}
    assert key_options(work, {"z": 3, "exclude_ids": (5, 4)}) == {"z": 3.0, "exclude_ids": "4-5"}
    assert key_options(work, {"seed": 1}, seed=1) == {}


def test_a_record_holds_every_option_by_name():
    assert recorded(work, {"z": 3.0, "exclude_ids": (1, 2, 3, 9)}) == {
        "z": 3.0,
        "seed": 0,
        "dtype": "float32",
        "block_rows": None,
        "exclude_ids": "1-3,9",
        "weights": [],
        "order": "auto",
    }
    assert chosen(work, {"z": 3.0, "other": 1}) == {"z": 3.0}


@given(st.sets(st.integers(0, 300)))
def test_row_numbers_are_written_as_they_are_read(ids):
    assert parse_ids(as_ids(tuple(ids))) == tuple(sorted(ids))


class Found(Result):
    kind = "found"


def test_a_verb_checks_the_call_and_says_what_was_asked():
    @verb
    def find(source: Any, *, z: Z = 2.0, seed: Seed = 0) -> Found:
        assert isinstance(z, float)
        return Found()

    found = find("x", z=3)
    assert found.options == {"z": 3.0, "seed": 0}
    assert found.seconds > 0.0
    with pytest.raises(OptionError, match="seed = -1"):
        find("x", seed=-1)
    with pytest.raises(InputError, match="find has no option sead; did you mean seed"):
        find("x", sead=1)
    with pytest.raises(TypeError, match="source"):
        find()


def test_a_verb_over_another_names_its_options():
    def base(source: Any, *, z: Z = 2.0, seed: Seed = 0, dtype: Dtype = "float32") -> None: ...

    @verb_over(base, leave=("dtype",))
    def many(sources: Any, *, seed: Seed = 5, **options: Any) -> dict[str, Any]:
        return {"seed": seed, **options}

    assert list(inspect.signature(many).parameters) == ["sources", "seed", "z"]
    assert list(parameters(many)) == ["seed", "z"]
    assert many("x") == {"seed": 5}
    assert many("x", z=1) == {"seed": 5, "z": 1.0}
    with pytest.raises(InputError, match="many has no option dtype"):
        many("x", dtype="float64")
    with pytest.raises(OptionError, match=r"z = -1\.0"):
        many("x", z=-1.0)
