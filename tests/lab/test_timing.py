"""What is timed is what is claimed. No test depends on how fast anything is."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tables import for_each

from lab import timing
from lab.timing import Plan, Timed, add_gradients, clock, report, time_models
from pyramidions.base.errors import UserError
from pyramidions.models import build, preset
from pyramidions.models.experiment import Experiment
from pyramidions.nn import Decoder, Encoder, Transformer


def experiment(name: str = "tiny", run: dict[str, Any] | None = None, **overrides: Any) -> Experiment:
    small: dict[str, Any] = {
        "embed_dim": 16,
        "ffn_embed_dim": 32,
        "num_heads": 2,
        "self_attention": "blockwise(block_size=8)",
        "pooling_lengths": "16,4",
        "decoding_beam": 3,
    }
    return Experiment(name, preset("pyramidion", **{**small, **overrides}), 24, 7, run or {})


def plan(**changes: Any) -> Plan:
    sizes: dict[str, Any] = {"train_batch": 3, "decode_batch": 2, "decode_tokens": (4, 6), "vocab_size": 40}
    return Plan(**{**sizes, "repeats": 2, "warmup": 0, **changes})


@for_each("micro_batch", [1, 2, 3, 5])
def test_gradients_of_pieces_add_up_to_those_of_the_batch(micro_batch: int) -> None:
    off = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    torch.manual_seed(0)
    model = build(experiment(**off).model, 40).train()
    source, target = torch.randint(4, 40, (5, 24)), torch.randint(4, 40, (5, 7))
    prefix = torch.cat([torch.full((5, 1), 2), target[:, :-1]], dim=1)
    F.cross_entropy(model(source, prefix).transpose(1, 2), target).backward()
    expected = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    add_gradients(model, source, target, micro_batch, plan().autocast)
    assert len(expected) == len(list(model.parameters()))
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], rtol=1e-4, atol=1e-7)


def test_configs_take_turns_and_the_warm_up_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter(range(1, 100))
    monkeypatch.setattr(timing, "clock", lambda work, device: (float(next(turns)), None))
    first, second = time_models([experiment(), experiment()], plan(warmup=1, repeats=3))
    # Turns 1 and 2 are the warm-up of both, 3 is the first one's again.
    assert (first["decode_4"].seconds, second["decode_4"].seconds) == ([3, 5, 7], [4, 6, 8])
    assert (first["decode_6"].seconds, second["decode_6"].seconds) == ([11, 13, 15], [12, 14, 16])
    assert (first["train_step"].seconds, second["train_step"].seconds) == ([19, 21, 23], [20, 22, 24])
    assert list(first) == ["train_step", "decode_4", "decode_6"]


def test_what_the_bar_counts_is_what_was_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    phases: list[list[Any]] = []

    class Bar:
        def update(self) -> None:
            phases[-1][2] += 1

    def bar(phase: str, turns: int, unit: str) -> Any:
        phases.append([phase, turns, 0])
        return nullcontext(Bar())

    monkeypatch.setattr(timing, "progress_bar", bar)
    time_models([experiment(), experiment()], plan(micro_batch=2, warmup=1))
    # 2 models x 3 turns
    assert phases == [["decode_4", 6, 6], ["decode_6", 6, 6], ["train_step", 6, 6]]


def test_models_decode_without_dropout_and_train_with_it_on_documents_of_full_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[tuple[int, ...], bool]] = []
    forward = Encoder.forward

    def spy(self: Encoder, tokens: torch.Tensor, padding_mask: torch.Tensor, **rest: Any) -> Any:
        calls.append((tuple(tokens.shape), self.training))
        assert not padding_mask.any()
        return forward(self, tokens, padding_mask, **rest)

    monkeypatch.setattr(Encoder, "forward", spy)
    time_models([experiment()], plan(micro_batch=2, decode_tokens=(4,)))
    assert calls == [((2, 24), False)] * 2 + [((2, 24), True), ((1, 24), True)] * 2


def test_a_beam_of_the_configs_width_is_forced_to_write_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    forward = Decoder.forward

    def spy(self: Decoder, tokens: torch.Tensor, *rest: Any) -> torch.Tensor:
        if not self.training:
            shapes.append(tuple(tokens.shape))
        return forward(self, tokens, *rest)

    monkeypatch.setattr(Decoder, "forward", spy)
    time_models([experiment()], plan(decode_tokens=(5,)))
    # The first token finds one hypothesis of each of the 2 documents, every other one 3.
    assert shapes == ([(2, 1)] + [(6, 1)] * 4) * 2


def test_summaries_are_as_long_as_asked_or_as_the_config_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    forward = Transformer.forward

    def spy(self: Transformer, source: torch.Tensor, prefix: torch.Tensor) -> torch.Tensor:
        lengths.append(prefix.size(1))
        return forward(self, source, prefix)

    monkeypatch.setattr(Transformer, "forward", spy)
    time_models([experiment()], plan())
    time_models([experiment()], plan(target_tokens=5))
    assert lengths == [7, 7, 5, 5]


def test_a_training_step_changes_every_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[Transformer] = []

    def keep(*arguments: Any) -> Transformer:
        models.append(build(*arguments))
        return models[-1]

    monkeypatch.setattr(timing, "build", keep)
    time_models([experiment()], plan())
    torch.manual_seed(1)
    fresh = build(experiment().model, 40)
    for before, after in zip(fresh.parameters(), models[0].parameters(), strict=True):
        assert not torch.equal(before, after)


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_bf16_computes_in_bfloat16_and_keeps_parameters_in_float32(
    monkeypatch: pytest.MonkeyPatch, precision: str, dtype: torch.dtype
) -> None:
    seen: set[tuple[bool, torch.dtype, torch.dtype]] = set()
    forward = Decoder.forward

    def spy(self: Decoder, *arguments: Any) -> torch.Tensor:
        logits = forward(self, *arguments)
        seen.add((self.training, logits.dtype, self.embedder.tokens.weight.dtype))
        return logits

    monkeypatch.setattr(Decoder, "forward", spy)
    time_models([experiment()], plan(precision=precision))
    assert seen == {(True, dtype, torch.float32), (False, dtype, torch.float32)}


def test_a_gpu_is_idle_before_and_after_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    def waits_for_the_gpu() -> float:
        log.append("wait")
        return 1.5 * len(log)

    monkeypatch.setattr(timing, "timer", waits_for_the_gpu)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: log.append("reset"))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 7)
    assert clock(lambda: log.append("work"), "cuda") == (3.0, 7)
    assert log == ["reset", "wait", "work", "wait"]


def test_peak_memory_leaves_out_what_lies_there_for_other_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "clock", lambda work, device: (1.0, 10**9))
    alone = time_models([experiment()], plan())[0]["decode_4"].peak_bytes
    beside = time_models([experiment(), experiment(embed_dim=64)], plan())[0]["decode_4"].peak_bytes
    # Weights of the other one, and its texts: 3 documents of 24 tokens and 3 summaries of 7, of 8 bytes each.
    weights = sum(weight.nbytes for weight in build(experiment(embed_dim=64).model, 40).parameters())
    assert (alone, beside) == (10**9, 10**9 - weights - 3 * (24 + 7) * 8)


def test_statistics_are_of_a_sample() -> None:
    timed = Timed([1.0, 2.0, 6.0], None)
    assert (timed.mean, timed.median, timed.deviation) == (3.0, 2.0, 7.0**0.5)
    assert timed.ratio_to(Timed([2.0, 1.0, 4.0], None)) == {"medians": 1.0, "low": 0.5, "high": 2.0}


def test_a_report_holds_what_a_reader_needs_to_repeat_it() -> None:
    experiments = [experiment("one"), experiment("two")]
    results = time_models(experiments, plan())
    told = report(experiments, plan(), results, ["model.dropout=0"])
    assert set(told) == {"overrides", "commit", "versions", "hardware", *vars(plan()), "configs"}
    assert told["overrides"] == ["model.dropout=0"]
    assert told["versions"]["torch"] == torch.__version__ and told["hardware"]["threads"] == torch.get_num_threads()
    assert [config["config"] for config in told["configs"]] == ["one", "two"]
    for config, result in zip(told["configs"], results, strict=True):
        assert (config["source_tokens"], config["target_tokens"], config["beam"]) == (24, 7, 3)
        for phase in ("train_step", "decode_4", "decode_6"):
            assert config[phase]["seconds"] == result[phase].seconds and len(result[phase].seconds) == 2
            assert config[phase]["mean"] == pytest.approx(sum(result[phase].seconds) / 2)
            assert config[phase]["ratio_to_first"] == result[phase].ratio_to(results[0][phase])


@pytest.mark.parametrize("changes", [{"micro_batch": 4}, {"device": "cuda"}, {"vocab_size": 4}])
def test_what_does_not_fit_together_names_the_option(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=f"^--{next(iter(changes)).replace('_', '-')} must be "):
        time_models([experiment()], plan(**changes))


def takes_a_petabyte(*_: Any) -> None:
    torch.empty(2**50)


def takes_all_of_a_gpu(*_: Any) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def fails_otherwise(*_: Any) -> None:
    torch.zeros(2) @ torch.zeros(3)


@for_each(
    ("work", "error", "told"),
    [
        (takes_a_petabyte, UserError, "Memory ran out .* tiny .*--micro-batch"),
        (takes_all_of_a_gpu, UserError, "Memory ran out .* tiny .*--micro-batch"),
        (fails_otherwise, RuntimeError, "inconsistent tensor size"),
    ],
)
def test_memory_that_runs_out_is_told_with_the_option_that_helps(
    work: Callable[..., None], error: type[Exception], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "add_gradients", work)
    with pytest.raises(error, match=told):
        time_models([experiment()], plan(micro_batch=2, decode_tokens=()))
