"""`pyramidions cost`; what it counts is a matter of tests/runs/measure."""

import json
from pathlib import Path
from typing import Any

import pytest
from invoking import run, succeed

from pyramidions.nn.attention import BlockwiseAttention

DEEP = str(Path(__file__).parents[2] / "configs" / "table3" / "deep_pyramidion.yaml")


def row(output: str, name: str) -> list[str]:
    """Return the words of the first line that begins so, without it."""
    (line, *_) = (line for line in output.splitlines() if line.startswith(name))
    return line.removeprefix(name).split()


def test_one_config_is_listed_by_part_and_others_stand_beside_it() -> None:
    result = succeed("cost", "deep_pyramidion")
    assert result.output.startswith("deep_pyramidion: documents of 8192 tokens, summaries of 512, batch 1,")
    work, memory = result.output.split("\nMB ")
    assert "batch 1, vocabulary 32768, 124.4 million parameters\n" in work
    assert row(work, "encoder self-attention") == ["15.703", "7.7%"]
    assert row(work, "cross-attention") == ["2.416", "1.2%"]
    assert row(memory, "encoder self-attention")[0] == "246.0"
    assert "less" not in result.output
    result = run("cost", "deep_blockwise", "deep_pyramidion")
    work, memory = result.output.split("\nMB ")
    assert row(work, "encoder self-attention") == ["38.655", "7.4%", "15.703", "7.7%", "2.46x"]
    assert row(memory, "encoder self-attention")[::2] == ["605.6", "246.0", "2.46x"]
    assert "deep_blockwise." in result.output.split()


def test_lengths_change_the_count() -> None:
    shown = run("cost", "vanilla", "--source-tokens", 4096, "--target-tokens", 2048, "--batch", 3, "--vocab-size", 10)
    assert shown.output.startswith("vanilla: documents of 4096 tokens, summaries of 2048, batch 3, vocabulary 10,")
    # two layers, 2 n n d
    attention, output = (float(row(shown.output, name)[0]) for name in ("encoder self-attention", "output layer"))
    assert attention == pytest.approx(3 * 2 * 2 * 4096**2 * 512 / 1e9, abs=1e-3)
    assert output == pytest.approx(3 * 2048 * 512 * 10 / 1e9, abs=1e-3)


def test_a_file_and_its_overrides_are_read() -> None:
    result = succeed("cost", DEEP, "task.max_source_positions=4096", "task.max_target_positions=300")
    assert result.output.startswith(f"{DEEP}: documents of 4096 tokens, summaries of 300,")
    # What is too long for a column is cut.
    assert "...table3/deep_pyramidion.yaml" in result.output.split()


def test_a_check_shows_both_figures_and_a_file_has_all_numbers(tmp_path: Path) -> None:
    out = tmp_path / "cost.json"
    result = succeed("cost", "deep_pyramidion", "lsh", "--check", "--json", out)
    small = result.output.split("deep_pyramidion, small:")[1]
    assert small.startswith(" documents of 512 tokens, summaries of 32,")
    assert row(small, "encoder self-attention") == ["2,555,904"] * 2 + ["678,912"] * 2
    written = json.loads(out.read_text())
    pooled, hashed = written["configs"]
    assert pooled["lengths"] == {"source": 8192, "target": 512, "batch": 1, "vocab_size": 32768}
    # Heads are joined to a tensor of their own, which the last projection keeps as well.
    assert hashed["activation_bytes"]["encoder projections"] == 2 * 2 * 8192 * 512 * 4
    assert written["checks"]["lsh"]["agrees"] is True


def test_a_check_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = BlockwiseAttention.forward

    def shirk(self: BlockwiseAttention, q: Any, k: Any, v: Any, *rest: Any, **named: Any) -> Any:
        return v if q.device.type == "cuda" else forward(self, q, k, v, *rest, **named)

    monkeypatch.setattr(BlockwiseAttention, "forward", shirk)
    result = run("cost", "vanilla", "blockwise", "--check")
    assert result.exit_code == 1
    assert result.stderr.split()[-1] == "blockwise."
