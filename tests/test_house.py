"""The house rules that can be measured: sizes of folders, files and functions, imports, cycles, a map in each room."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from repcap.verbs import VERBS

SRC = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SRC / "repcap"
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").exists() and path.name != "data")
TREES = {path: ast.parse(path.read_text()) for path in FILES}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """(import, whether it stands in a function) of a tree, without `if TYPE_CHECKING:` blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, inside
        elif not is_type_checking(child):
            yield from imports(child, inside or isinstance(child, Function))


def imported(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules of repcap that a statement imports."""
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    else:
        base = statement.module or ""
        names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in statement.names]
    yield from (name for name in dict.fromkeys(names) if name in MODULES)


def signature_only(function: Function) -> int:
    """Lines of a function without decorators, signature (the list of options) and docstring (their meaning)."""
    told = len(function.body) > 1 and isinstance(function.body[0], ast.Expr) and ast.get_docstring(function) is not None
    return (function.end_lineno or 0) - function.body[1 if told else 0].lineno + 1


def is_verb(function: Function) -> bool:
    """Whether a function is one that the command line is derived from."""
    return any(ast.unparse(one).startswith(("verb", "command_of")) for one in function.decorator_list)


def test_at_most_15_python_files_in_a_folder() -> None:
    count: dict[Path, int] = defaultdict(int)
    for path in FILES:
        count[path.parent] += path.name != "__init__.py"
    assert not {str(path.relative_to(SRC)): n for path, n in count.items() if n > 15}


def test_no_file_over_400_lines() -> None:
    long = {name_of(path): text.count("\n") for path in FILES if (text := path.read_text()).count("\n") > 400}
    assert not long


def test_no_function_over_60_lines_but_for_signatures_of_the_command_line() -> None:
    long = {}
    for path, tree in TREES.items():
        at_the_door = path.name == "command.py"
        for node in ast.walk(tree):
            if isinstance(node, Function):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if (signature_only(node) if at_the_door or is_verb(node) else lines) > 60:
                    long[f"{name_of(path)}.{node.name}"] = lines
    assert not long


def test_imports_stand_at_the_top() -> None:
    """Those in functions are for the doors, where something heavy waits until it is needed."""
    inside = {path: sum(deep for _, deep in imports(tree)) for path, tree in TREES.items()}
    where = sorted(((n, name_of(path)) for path, n in inside.items() if n), reverse=True)
    assert sum(inside.values()) < 60, where


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """One cycle of a directed graph, or []."""
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return []
        for following in sorted(graph[node]):
            found = walk(following, [*path, node])
            if found:
                return found
        done.add(node)
        return []

    return next((found for start in sorted(graph) if (found := walk(start, []))), [])


@pytest.mark.parametrize("room", [path.name for path in ROOMS])
def test_no_cycle_inside_a_room(room: str) -> None:
    """Imports in functions count too. A room's own door (`__init__`) is not imported from inside."""
    door = f"repcap.{room}"
    inside = {name for name in MODULES if name.startswith(f"{door}.")}
    graph = {
        name: {
            target
            for statement, _ in imports(TREES[MODULES[name]])
            for target in imported(statement)
            if target in inside
        }
        - {name}
        for name in inside
    }
    assert cycle(graph) == []


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("room", [path.name for path in ROOMS])
def test_every_room_has_its_map(room: str) -> None:
    text = (PACKAGE / room / "README.md").read_text()
    assert 3 <= len(text.splitlines()) <= 30
    entries = {
        path.name for path in (PACKAGE / room).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    if room == "verbs":  # the table of verbs names its folders
        text += " ".join(VERBS)
    unnamed = {
        name
        for name in entries - {"__init__.py"}
        if name.removesuffix(".py").replace("_", "") not in text.replace("_", "").replace("-", "")
    }
    assert not unnamed, "the map does not name them"


def test_imports_inside_functions_are_told_apart() -> None:
    source = (
        "import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    import c\n    if TYPE_CHECKING:\n        import d\n"
    )
    found = [(statement.names[0].name, deep) for statement, deep in imports(ast.parse(source))]
    assert found == [("a", False), ("c", True)]
