"""What is timed is what is claimed. No test depends on how fast anything is."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from invoking import run_lab
from refusals import refused

from lab import timing
from lab.claims import CLAIMS, ORDERS
from lab.timing import Plan, Timed, add_gradients, clock, time_models
from pyramidions.models import build, preset
from pyramidions.models.experiment import Experiment
from pyramidions.nn import Decoder, Encoder

pytestmark = pytest.mark.nightly
CONFIGS = Path(__file__).parents[2] / "configs"
ROW = CONFIGS / "table3" / "deep_pyramidion.yaml"
SMALL = [
    *("model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "model.decoding_beam=2"),
    *("task.max_source_positions=48", "task.max_target_positions=9"),
]
FEW = ["--vocab-size", 50, "--repeats", 2, "--warmup", 0]
BATCHES = ["--train-batch", 3, "--micro-batch", 2, "--decode-batch", 2, "--decode-tokens", "3,4"]


def experiment(name: str = "tiny", **overrides: Any) -> Experiment:
    small: dict[str, Any] = {
        **dict.fromkeys(("embed_dim", "ffn_embed_dim"), 16),
        "num_heads": 2,
        "decoding_beam": 3,
        "self_attention": "blockwise(block_size=8)",
        "pooling_lengths": "16,4",
    }
    return Experiment(name, preset("pyramidion", **{**small, **overrides}), 24, 7, {})


def plan(**changes: Any) -> Plan:
    sizes: dict[str, Any] = {"train_batch": 3, "decode_batch": 2, "decode_tokens": (4, 6), "vocab_size": 40}
    return Plan(**{**sizes, "repeats": 2, "warmup": 0, **changes})


@pytest.mark.parametrize("micro_batch", [2, 5])
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


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_models_train_with_dropout_on_full_documents_and_write_every_token_with_the_beam_of_the_config(
    precision: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[tuple[int, ...], bool]] = []
    written: list[tuple[int, ...]] = []
    taught: list[int] = []
    seen: set[tuple[bool, torch.dtype, torch.dtype]] = set()
    encode, decode = Encoder.forward, Decoder.forward

    def encoding(self: Encoder, tokens: torch.Tensor, padding_mask: torch.Tensor, **rest: Any) -> Any:
        read.append((tuple(tokens.shape), self.training))
        assert not padding_mask.any()
        return encode(self, tokens, padding_mask, **rest)

    def decoding(self: Decoder, tokens: torch.Tensor, *rest: Any) -> torch.Tensor:
        if self.training:
            taught.append(tokens.size(1))
        else:
            written.append(tuple(tokens.shape))
        logits = decode(self, tokens, *rest)
        seen.add((self.training, logits.dtype, self.embedder.tokens.weight.dtype))
        return logits

    monkeypatch.setattr(Encoder, "forward", encoding)
    monkeypatch.setattr(Decoder, "forward", decoding)
    time_models([experiment()], plan(micro_batch=2, decode_tokens=(5,), precision=precision))
    assert read == [((2, 24), False)] * 2 + [((2, 24), True), ((1, 24), True)] * 2
    # The first token finds one hypothesis of each of the 2 documents, every other one 3.
    assert written == ([(2, 1)] + [(6, 1)] * 4) * 2
    assert seen == {(True, dtype, torch.float32), (False, dtype, torch.float32)}
    # Summaries are as long as the config allows, or as asked.
    assert set(taught) == {7}
    taught.clear()
    time_models([experiment()], plan(target_tokens=5, decode_tokens=()))
    assert set(taught) == {5}


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


def test_peak_memory_leaves_out_other_configs_and_what_runs_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "clock", lambda work, device: (1.0, 10**9))
    alone = time_models([experiment()], plan())[0]["decode_4"].peak_bytes
    beside = time_models([experiment(), experiment(embed_dim=64)], plan())[0]["decode_4"].peak_bytes
    # Weights of the other one, and its texts: 3 documents of 24 tokens and 3 summaries of 7, of 8 bytes each.
    weights = sum(weight.nbytes for weight in build(experiment(embed_dim=64).model, 40).parameters())
    assert (alone, beside) == (10**9, 10**9 - weights - 3 * (24 + 7) * 8)
    # Memory that runs out is told with the option that helps.
    monkeypatch.undo()
    monkeypatch.setattr(timing, "add_gradients", lambda *_: torch.empty(2**50))
    with refused("--micro-batch"):
        time_models([experiment()], plan(micro_batch=2, decode_tokens=()))


def test_figures_are_means_medians_deviations_and_ratios_of_turns() -> None:
    timed, other = Timed([1.0, 2.0, 6.0], None), Timed([2.0, 1.0, 4.0], None)
    ratio = {"medians": 1.0, "low": 0.5, "high": 2.0}
    figures = {"mean": 3.0, "standard_deviation": 7.0**0.5, "median": 2.0, "ratio_to_first": ratio}
    assert timed.as_json(other) == {"seconds": timed.seconds, "peak_bytes": None, **figures}


def test_a_table_has_a_row_for_each_config_and_ratios_to_the_first(tmp_path: Path) -> None:
    out = tmp_path / "times.json"
    asked = [*SMALL, *BATCHES, *FEW, "--target-tokens", 6, "--precision", "bf16", "--json", out]
    result = run_lab("time", ROW, CONFIGS / "base.yaml", *asked)
    assert result.exit_code == 0, result.output
    head, *rows = [line.split() for line in result.stdout.splitlines()]
    assert head == ["train_step,", "s", "decode_3,", "s", "decode_4,", "s"]
    assert [row[0] for row in rows[:2]] == ["table3/deep_pyramidion", "base"]
    assert sum(row[:1] == ["base"] for row in rows) == 2  # seconds, then ratios
    told = json.loads(out.read_text())
    assert set(told) == {"overrides", "commit", "versions", "hardware", *vars(plan()), "configs"}
    assert told["overrides"] == SMALL and (told["precision"], told["micro_batch"]) == ("bf16", 2)
    assert told["versions"]["torch"] == torch.__version__ and told["hardware"]["threads"] == torch.get_num_threads()
    first, second = told["configs"]
    assert (first["source_tokens"], first["target_tokens"], first["beam"]) == (48, 6, 2)
    for phase in ("train_step", "decode_3", "decode_4"):
        timed, begun = (Timed(config[phase]["seconds"], None) for config in (second, first))
        assert second[phase] == timed.as_json(begun) and len(timed.seconds) == 2
    # A preset, in the small batches of a CPU.
    result = run_lab("time", "pyramidion", *SMALL[:4], "--source-tokens", 48, "--target-tokens", 9, *FEW)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split() == ["train_step,", "s", "decode_32,", "s"]
    assert "Ratio" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["model.dropout=0"], "model.dropout=0"),
        (["vanila"], "'vanila'"),
        ([ROW, "--source-tokens", 9000], "--source-tokens"),
        (["vanilla", "--micro-batch", "65"], "--micro-batch"),
        (["vanilla", "model.decoding_beam=4", "--vocab-size", "5"], "--vocab-size"),
        (["vanilla", "--device", "cuda"], "--device"),
        (["vanilla", "--json", "no/x.json"], "--json"),
        (["vanilla", "--decode-tokens", "256,many"], "'256,many'"),
        (["vanilla", "--decode-tokens", "4,4"], "'4,4'"),
    ],
)
def test_what_breaks_a_rule_is_named(arguments: list[Any], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = run_lab("time", *arguments)
    assert result.exit_code in (1, 2) and told in result.stderr.splitlines()[-1]


def test_the_claims_of_the_paper_come_out() -> None:
    ours = [round(claim.ours, 2) for claim in CLAIMS]
    # Savings, a bound, the decoder by scores and mixes alone and by everything, and others.
    assert ours == [16.0, 2.46, 16.0, round(2 - 512 / 8192, 2), 12.99, 3.99, 5.02, 0.79, 4608.0]
    assert len(ORDERS) == 21
    others = {growth.claim: round(growth.ours, 2) for growth in ORDERS if growth.paper != f"{growth.ours:g}x"}
    # Hashing costs n n d / m: it grows with the number of buckets, and falls with their size.
    assert others == {"LSH, l m h n d: n": 2.4, "LSH, l m h n d: m": 1.5}
    titles = [line[:30].split("  ")[0] for line in run_lab("claims").stdout.splitlines()]
    assert "The paper claims" in titles and "Table 1: scores and mixes when" in titles
