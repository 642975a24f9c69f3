"""The own losses of a model's parts in a training step, whatever the criterion."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from pyramidions.models import build, preset
from pyramidions.plugin.criterions.pooled_cross_entropy import PooledCrossEntropyCriterion
from pyramidions.plugin.tasks.learning import log_regulariser
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask

TINY = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0}
TOKENS = torch.randint(4, 20, (2, 30), generator=torch.Generator().manual_seed(0))
SAMPLE = {"net_input": {"source": TOKENS}, "target": TOKENS[:, :5].contiguous(), "ntokens": 10}


class Model(BaseFairseqModel):
    def __init__(self, penalty: float) -> None:
        super().__init__()
        torch.manual_seed(1)
        attention = f"adaptive_span(max_window=8, ramp=2, penalty={penalty})"
        self.inner = build(preset("vanilla", **TINY, self_attention=attention), 20, 1)

    def forward(self, source: Tensor) -> Any:
        return self.inner(source, source[:, :5]), {}

    def get_normalized_probs(self, output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        return output[0].log_softmax(dim=-1)

    def get_targets(self, sample: Any, output: Any) -> Tensor:
        return sample["target"]

    def spans(self) -> list[nn.Parameter]:
        return [value for name, value in self.named_parameters() if name.endswith(".span")]


def step(criterion: type, penalty: float) -> tuple[list[Tensor], dict[str, Any]]:
    """Return the gradients of the spans after a step of training, per token, and what is logged."""
    dictionary = SimpleNamespace(pad=lambda: 1)
    task = LongDocumentSummarizationTask.__new__(LongDocumentSummarizationTask)
    task._training, task.cfg = None, SimpleNamespace(copying_updates=0)
    model = Model(penalty)
    loss = criterion(SimpleNamespace(target_dictionary=dictionary), sentence_avg=False, label_smoothing=0.1)
    optimizer = SimpleNamespace(backward=lambda loss: loss.backward())
    _, sample_size, logged = task.train_step(SAMPLE, model, loss, optimizer, 0)
    assert sample_size == 10
    return [span.grad / sample_size for span in model.spans()], logged


@pytest.mark.parametrize("criterion", [PooledCrossEntropyCriterion, LabelSmoothedCrossEntropyCriterion])
def test_a_penalty_on_spans_reaches_the_loss_of_each_token(criterion: type) -> None:
    (without, silent), (with_penalty, logged) = step(criterion, 0.0), step(criterion, 0.3)
    assert len(without) == 2 and "regulariser" not in silent
    slope = torch.tensor(1.0).sigmoid() * (1 - torch.tensor(1.0).sigmoid())
    for before, after in zip(without, with_penalty, strict=True):
        # Two heads, each of which sees 4 positions on either side at most.
        torch.testing.assert_close(after - before, (0.3 * 4 * slope / 2).expand(2), atol=1e-5, rtol=1e-4)
    of_both_layers = 2 * 0.3 * 4 * torch.tensor(1.0).sigmoid().item()
    assert logged["regulariser"].item() == pytest.approx(10 * of_both_layers)
    with metrics.aggregate() as found:
        log_regulariser([{**logged}, {**logged}])
        log_regulariser([silent])
    assert found["regulariser"].avg == pytest.approx(of_both_layers)


def test_validation_is_without_it() -> None:
    task = LongDocumentSummarizationTask.__new__(LongDocumentSummarizationTask)
    task._validation = None
    dictionary = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: 1))
    losses = [
        task.valid_step(SAMPLE, Model(penalty), PooledCrossEntropyCriterion(dictionary, False, 0.0))[0]
        for penalty in (0.0, 5.0)
    ]
    assert losses[0].equal(losses[1])
