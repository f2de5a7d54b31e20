"""The callback in a real Trainer: what reaches its loggers is what the weights give, at the steps asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from repcap.errors import InputError

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

KEYS = {"repcap/epsilon", "repcap/epsilon_ratio", "repcap/class"}


class Recorder(transformers.TrainerCallback):
    """Stands for TensorBoard or W&B: a callback that sees every log, with what the weights were then."""

    def __init__(self):
        self.logs, self.weights = [], []

    def on_log(self, args, state, control, logs=None, model=None, **kwargs):
        self.logs.append((state.global_step, dict(logs)))
        self.weights.append(model.get_input_embeddings().weight.detach().clone())


def epsilon(rows):
    units = torch.nn.functional.normalize(rows.double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]
    return float(cosines.mean() + 2 * cosines.std(correction=0))


def test_attached_it_reaches_loggers_that_stand_before_it(trainer):
    from repcap.integrations import EpsilonCallback

    recorder = Recorder()
    run = trainer(recorder)
    callback = EpsilonCallback(every=2).attach(run)
    assert callback.attach(run) is callback
    run.train()
    seen = [(step, logs, weight) for (step, logs), weight in zip(recorder.logs, recorder.weights, strict=True)]
    ours = [(step, logs, weight) for step, logs, weight in seen if "repcap/epsilon" in logs]
    assert [step for step, _, _ in ours] == [2, 4, 6]
    for _, logs, weight in ours:
        assert logs["repcap/epsilon"] == pytest.approx(epsilon(weight), abs=1e-5)
        assert logs["repcap/epsilon_ratio"] == pytest.approx(epsilon(weight) / (2 / 8**0.5), abs=1e-5)
        assert logs["repcap/class"] in (0.0, 1.0, 2.0)
    assert len({logs["repcap/epsilon"] for _, logs, _ in ours}) == 3  # the weights move
    assert [row["step"] for row in run.state.log_history if "repcap/epsilon" in row] == [2, 4, 6]
    assert any("loss" in logs for _, logs in recorder.logs)


def test_given_as_a_callback_it_reaches_the_history_and_what_comes_after_it(trainer):
    from repcap.integrations import EpsilonCallback

    recorder = Recorder()
    run = trainer(EpsilonCallback(every=3), recorder)
    run.train()
    assert [row["step"] for row in run.state.log_history if "repcap/epsilon" in row] == [3, 6]
    ours = [(step, logs) for step, logs in recorder.logs if "repcap/epsilon" in logs]
    assert [step for step, _ in ours] == [3, 6]
    assert set(ours[0][1]) >= KEYS


def test_two_matrices_have_two_names(trainer):
    from repcap.integrations import EpsilonCallback

    run = trainer(tied=False, steps=2)
    callback = EpsilonCallback(every=2, prefix="geometry").attach(run)
    run.train()
    found = callback.watch.last
    model = run.model
    assert found["geometry/embedding_epsilon"] == pytest.approx(
        epsilon(model.model.embed_tokens.weight.detach()), abs=1e-5
    )
    assert found["geometry/unembedding_epsilon"] == pytest.approx(epsilon(model.lm_head.weight.detach()), abs=1e-5)


def test_a_second_run_counts_anew(trainer):
    from repcap.integrations import EpsilonCallback

    run = trainer(steps=2)
    EpsilonCallback(every=2).attach(run)
    run.train()
    run.train()
    assert [row["step"] for row in run.state.log_history if "repcap/epsilon" in row] == [2]


def test_what_cannot_be_measured_warns_once_and_does_not_stop_training(trainer, caplog):
    from repcap.integrations import EpsilonCallback

    run = trainer(steps=3)
    run.model.model.embed_tokens.weight.data.zero_()
    run.args.learning_rate = 0.0
    EpsilonCallback(every=1).attach(run)
    run.train()
    assert not any("repcap/epsilon" in row for row in run.state.log_history)
    assert len([record for record in caplog.records if record.name == "repcap.integrations"]) == 1


def test_any_failure_of_a_measurement_leaves_training_alone(trainer, caplog, monkeypatch):
    import repcap.geometry.measurement.live
    from repcap.integrations import EpsilonCallback

    def fail(*_args, **_kwargs):
        raise RuntimeError("the device is out of\nmemory")

    monkeypatch.setattr(repcap.geometry.measurement.live, "live_spread", fail)
    run = trainer(steps=3)
    EpsilonCallback(every=1).attach(run)
    run.train()
    assert run.state.global_step == 3
    (warned,) = [record for record in caplog.records if record.name == "repcap.integrations"]
    assert warned.getMessage() == "repcap measures nothing: the device is out of memory"


def test_accumulated_gradients_evaluation_and_two_loggers(trainer, tmp_path):
    from repcap.integrations import EpsilonCallback

    first, second = Recorder(), Recorder()
    run = trainer(
        first,
        second,
        gradient_accumulation_steps=2,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
    )
    EpsilonCallback(every=2).attach(run)
    run.train()
    ours = [(step, logs) for step, logs in first.logs if "repcap/epsilon" in logs]
    assert [step for step, _ in ours] == [2, 4, 6]
    assert not any("eval_loss" in logs for _, logs in ours)
    assert [step for step, logs in first.logs if "eval_loss" in logs] == [2, 4, 6]
    assert first.logs == second.logs
    run.evaluate()
    assert len([logs for _, logs in first.logs if "repcap/epsilon" in logs]) == 3

    again = Recorder()
    resumed = trainer(again, steps=8, gradient_accumulation_steps=2)
    EpsilonCallback(every=2).attach(resumed)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    ours = [(step, logs["repcap/epsilon"]) for step, logs in again.logs if "repcap/epsilon" in logs]
    assert [step for step, _ in ours] == [6, 8]
    history = [row for row in resumed.state.log_history if "repcap/epsilon" in row]
    assert [row["step"] for row in history] == [2, 4, 6, 8]


@pytest.mark.parametrize("every", [0, -3, 2.5, True])
def test_every_must_be_a_number_of_steps(every):
    from repcap.integrations import EpsilonCallback

    with pytest.raises(InputError, match="every = "):
        EpsilonCallback(every=every)


def test_importing_the_package_imports_no_framework():
    program = (
        "import sys, repcap.integrations\n"
        "print([m for m in ('torch', 'transformers', 'lightning', 'pytorch_lightning') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name():
    import repcap.integrations

    with pytest.raises(AttributeError, match="Nothing"):
        repcap.integrations.Nothing  # noqa: B018
