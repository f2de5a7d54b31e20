"""The callback in a real Lightning trainer, with a logger on disk."""

from __future__ import annotations

import csv

import pytest
import torch

pl = pytest.importorskip("pytorch_lightning")

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own hints about workers and loggers


def epsilon(rows):
    units = torch.nn.functional.normalize(rows.detach().double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]
    return float(cosines.mean() + 2 * cosines.std(correction=0))


class Small(pl.LightningModule):
    """A wrapped language model of one embedding and a head."""

    def __init__(self, tied=True):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Module()
        self.net.model = torch.nn.Module()
        self.net.model.embed_tokens = torch.nn.Embedding(30, 6)
        self.net.lm_head = torch.nn.Linear(6, 30, bias=False)
        if tied:
            self.net.lm_head.weight = self.net.model.embed_tokens.weight
        self.seen = {}

    def training_step(self, batch, index):
        logits = self.net.lm_head(self.net.model.embed_tokens(batch))
        return torch.nn.functional.cross_entropy(logits, batch)

    def on_train_batch_end(self, outputs, batch, index):
        self.seen[self.trainer.global_step] = self.net.model.embed_tokens.weight.detach().clone()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


def fit(tmp_path, callback, module, steps=6, **options):
    from pytorch_lightning.loggers import CSVLogger

    logger = CSVLogger(tmp_path, name="run")
    trainer = pl.Trainer(
        max_steps=steps,
        accelerator="cpu",
        callbacks=[callback],
        logger=logger,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        log_every_n_steps=4,
        **options,
    )
    data = torch.utils.data.DataLoader(torch.arange(48) % 30, batch_size=4)
    trainer.fit(module, data)
    logger.save()
    path = next(tmp_path.rglob("metrics.csv"), None)
    rows = [] if path is None else list(csv.DictReader(path.read_text().splitlines()))
    return trainer, rows


def test_values_reach_the_logger_at_their_steps(tmp_path):
    from repcap.integrations.lightning import EpsilonCallback

    module = Small()
    trainer, rows = fit(tmp_path, EpsilonCallback(every=2), module)
    found = {int(row["step"]): float(row["repcap/epsilon"]) for row in rows if row["repcap/epsilon"]}
    assert sorted(found) == [2, 4, 6]
    for step, value in found.items():
        assert value == pytest.approx(epsilon(module.seen[step]), abs=1e-5)
    assert float(trainer.callback_metrics["repcap/epsilon"]) == pytest.approx(found[6])
    ratios = [float(row["repcap/epsilon_ratio"]) for row in rows if row["repcap/epsilon_ratio"]]
    assert ratios[-1] == pytest.approx(found[6] / (2 / 6**0.5), rel=1e-6)


def test_accumulated_gradients_count_optimiser_steps(tmp_path):
    from repcap.integrations.lightning import EpsilonCallback

    _, rows = fit(tmp_path, EpsilonCallback(every=1), Small(), steps=3, accumulate_grad_batches=3)
    steps = [int(row["step"]) for row in rows if row["repcap/epsilon"]]
    assert steps == [1, 2, 3]


def test_any_failure_of_a_measurement_leaves_training_alone(tmp_path, monkeypatch):
    import repcap.geometry.measurement.live
    from repcap.integrations.lightning import EpsilonCallback

    def fail(*_args, **_kwargs):
        raise RuntimeError("no memory")

    monkeypatch.setattr(repcap.geometry.measurement.live, "live_spread", fail)
    trainer, rows = fit(tmp_path, EpsilonCallback(every=1), Small(), steps=3)
    assert trainer.global_step == 3
    assert not any("repcap/epsilon" in row for row in rows)


def test_untied_matrices_have_two_names(tmp_path):
    from repcap.integrations.lightning import EpsilonCallback

    module, callback = Small(tied=False), EpsilonCallback(every=3)
    fit(tmp_path, callback, module, steps=3)
    assert callback.watch.last["repcap/unembedding_epsilon"] == pytest.approx(
        epsilon(module.net.lm_head.weight), abs=1e-5
    )


def test_it_is_a_callback_of_every_lightning_that_is_there():
    from repcap.integrations.lightning import EpsilonCallback

    assert issubclass(EpsilonCallback, pl.Callback)
    assert isinstance(EpsilonCallback(every=5), pl.Callback)
