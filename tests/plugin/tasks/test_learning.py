"""What learns, and at which rate: scorers, frozen parts, and the own losses of a model's parts."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.optim.composite import FairseqCompositeOptimizer
from omegaconf import OmegaConf
from refusals import refused
from torch import Tensor, nn

from pyramidions.models import build, preset
from pyramidions.models.training import PoolingWarmup
from pyramidions.nn import Transformer
from pyramidions.nn.scorer import LinearScorer
from pyramidions.plugin.criterions.pooled_cross_entropy import PooledCrossEntropyCriterion
from pyramidions.plugin.tasks.config import DocumentTaskConfig
from pyramidions.plugin.tasks.learning import ScorerRate, begin_fine_tuning, log_regulariser
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.before, self.scorer, self.behind = nn.Linear(4, 4), LinearScorer(4), nn.Linear(4, 1)

    def step(self, optimizer: FairseqAdam, update: int) -> None:
        optimizer.zero_grad()
        x = self.before(torch.randn(5, 4, generator=torch.Generator().manual_seed(update)))
        (self.scorer.logits(x) * self.behind(x).squeeze(-1)).square().sum().backward()
        optimizer.step()


def adam(parameters: Any, lr: float) -> FairseqAdam:
    config = {"lr": [lr], "weight_decay": 0.1, "adam_betas": "(0.9, 0.98)", "tpu": False}
    return FairseqAdam(OmegaConf.structured(FairseqAdamConfig(**config)), list(parameters))


def test_a_step_of_scorers_is_adams_at_that_multiple_of_the_rate_and_others_are_as_ever() -> None:
    scaled, slow, fast = Model(), Model(), Model()
    optimizers = [adam(model.parameters(), 1.0) for model in (scaled, slow, fast)]
    ScorerRate(scaled, 10).follow(optimizers[0])
    # The rate follows the scheduler.
    for optimizer, rate in zip(optimizers, (1e-3, 1e-3, 1e-2), strict=True):
        optimizer.set_lr(rate)
    for model, optimizer in zip((scaled, slow, fast), optimizers, strict=True):
        model.step(optimizer, 1)
    for name, weight in scaled.named_parameters():
        expected = (fast if name.startswith("scorer") else slow).get_parameter(name)
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-7)
        assert not torch.equal(slow.get_parameter(name), fast.get_parameter(name))


def test_parameters_in_one_flat_tensor_are_found() -> None:
    # As with --fp16, which wants a GPU.
    model, rate = Model(), 1e-3
    own = list(model.parameters())
    flat = [nn.Parameter(torch.cat([p.detach().flatten() for p in own])) for _ in range(2)]
    for parameter in flat:
        parameter.grad = torch.arange(1.0, len(parameter) + 1)
    optimizers = [adam([parameter], rate) for parameter in flat]
    ScorerRate(model, 3).follow(optimizers[0])
    before = flat[0].detach().clone()
    for optimizer in optimizers:
        optimizer.step()
    scaled, plain = ((parameter.detach() - before).split([p.numel() for p in own]) for parameter in flat)
    for parameter, far, near in zip(own, scaled, plain, strict=True):
        of_scorer = any(parameter is other for other in model.scorer.parameters())
        torch.testing.assert_close(far, 3 * near if of_scorer else near, rtol=1e-3, atol=1e-7)


def test_another_layout_of_the_weights_is_refused() -> None:
    model = Model()
    own = list(model.parameters())
    values = sum(p.numel() for p in own)
    flat = [[nn.Parameter(torch.zeros(number))] for number in (7, values + 3)]
    for parameters in (*flat, own[::-1], own[:-1]):
        with refused("--scorer-lr-scale"):
            ScorerRate(model, 10).follow(adam(parameters, 1e-3))
    # Those of a criterion come behind.
    ScorerRate(model, 10).follow(adam([*own, nn.Parameter(torch.zeros(2))], 1e-3))


def test_a_run_goes_on_bit_for_bit_from_what_fairseq_saves() -> None:
    whole, first = Model(), Model()
    rates = [ScorerRate(whole, 10), ScorerRate(first, 10)]
    optimizers = [adam(whole.parameters(), 1e-3), adam(first.parameters(), 1e-3)]
    for model, optimizer, rate in zip((whole, first), optimizers, rates, strict=True):
        for update in range(3):
            rate.follow(optimizer)
            model.step(optimizer, update)
    resumed = Model()
    resumed.load_state_dict(first.state_dict())
    rate, own = ScorerRate(resumed, 10), adam(resumed.parameters(), 1e-3)
    # fairseq builds a second optimizer once the weights are there.
    rate.follow(own)
    own = adam(resumed.parameters(), 1e-3)
    own.load_state_dict(optimizers[1].state_dict())
    for update in range(3, 6):
        rates[0].follow(optimizers[0])
        whole.step(optimizers[0], update)
        rate.follow(own)
        resumed.step(own, update)
    assert all(torch.equal(weight, resumed.state_dict()[name]) for name, weight in whole.state_dict().items())


def test_frozen_weights_are_no_part_of_the_optimizer() -> None:
    model = Model()
    model.before.requires_grad_(False)
    optimizer = adam((p for p in model.parameters() if p.requires_grad), 1e-3)
    before, weights = model.before.weight.clone(), model.scorer.linear.weight.clone()
    ScorerRate(model, 10).follow(optimizer)
    model.step(optimizer, 1)
    assert torch.equal(model.before.weight, before)
    # Adam's first step is the rate itself.
    torch.testing.assert_close(
        (model.scorer.linear.weight - weights * (1 - 1e-3)).abs(), torch.full_like(weights, 1e-2), rtol=1e-3, atol=0
    )


def test_a_composite_optimizer_is_refused() -> None:
    optimizer = {**vars(FairseqAdamConfig(lr=[1e-3], tpu=False)), "_name": "adam"}
    group = {"optimizer": optimizer, "lr_scheduler": {"_name": "fixed", "warmup_updates": 0, "lr": [1e-3]}}
    config = OmegaConf.create({"groups": {"default": group}, "dynamic_groups": False})
    model = Model()
    composite = FairseqCompositeOptimizer(config, list(model.parameters()))
    with refused("--optimizer composes several"):
        ScorerRate(model, 10).follow(composite)


# Options of a training that begins gently.


SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "self_attention": "blockwise(block_size=8)"}


def model(**overrides: object) -> Transformer:
    torch.manual_seed(0)
    fields = {**SMALL, "pooling_lengths": "16,4", "max_source_positions": 64, **overrides}
    return build(preset("pyramidion", **fields), 50)


def test_only_what_is_asked_for_changes_a_model() -> None:
    given = model()
    before = [name for name, _ in given.named_modules()]
    assert begin_fine_tuning(DocumentTaskConfig(), given, 64) is None
    assert [name for name, _ in given.named_modules()] == before
    assert all(parameter.requires_grad for parameter in given.parameters())
    rate = begin_fine_tuning(DocumentTaskConfig(pooling_warmup=3, scorer_lr_scale=0.5), given, 64)
    assert isinstance(rate, ScorerRate) and isinstance(given.pooling_warmup, PoolingWarmup)


def test_how_much_is_frozen_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        begin_fine_tuning(DocumentTaskConfig(freeze="embeddings,poolers"), model(), 64)
    whole = sum(parameter.numel() for parameter in model().parameters())
    assert caplog.messages == [f"frozen: {50 * 16 + 2 * 17:,} of {whole:,} parameters (embeddings,poolers)"]


# The own losses of a model's parts in a training step, whatever the criterion.


TINY = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0}
TOKENS = torch.randint(4, 20, (2, 30), generator=torch.Generator().manual_seed(0))
SAMPLE = {"net_input": {"source": TOKENS}, "target": TOKENS[:, :5].contiguous(), "ntokens": 10}


class WithSpans(BaseFairseqModel):
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


def spans_step(criterion: type, penalty: float) -> tuple[list[Tensor], dict[str, Any]]:
    """Return the gradients of the spans after a step of training, per token, and what is logged."""
    dictionary = SimpleNamespace(pad=lambda: 1)
    task = LongDocumentSummarizationTask.__new__(LongDocumentSummarizationTask)
    task._training, task.cfg = None, SimpleNamespace(copying_updates=0)
    model = WithSpans(penalty)
    loss = criterion(SimpleNamespace(target_dictionary=dictionary), sentence_avg=False, label_smoothing=0.1)
    optimizer = SimpleNamespace(backward=lambda loss: loss.backward())
    _, sample_size, logged = task.train_step(SAMPLE, model, loss, optimizer, 0)
    assert sample_size == 10
    return [span.grad / sample_size for span in model.spans()], logged


@pytest.mark.parametrize("criterion", [PooledCrossEntropyCriterion, LabelSmoothedCrossEntropyCriterion])
def test_a_penalty_on_spans_reaches_the_loss_of_each_token(criterion: type) -> None:
    (without, silent), (with_penalty, logged) = spans_step(criterion, 0.0), spans_step(criterion, 0.3)
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
        task.valid_step(SAMPLE, WithSpans(penalty), PooledCrossEntropyCriterion(dictionary, False, 0.0))[0]
        for penalty in (0.0, 5.0)
    ]
    assert losses[0].equal(losses[1])
