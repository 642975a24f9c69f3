import json
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models import preset
from pyramidions.nn.attention import BlockwiseAttention
from pyramidions.runs.measure import Lengths, cost_of

DEEP = str(Path(__file__).parents[2] / "configs" / "table3" / "deep_pyramidion.yaml")


def row(output, name):
    """Return the words of the first line that begins so, without it."""
    (line, *_) = (line for line in output.splitlines() if line.startswith(name))
    return line.removeprefix(name).split()


def test_one_config_is_listed_by_part(run):
    result = run("cost", "deep_pyramidion")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("deep_pyramidion: documents of 8192 tokens, summaries of 512, batch 1,")
    work, memory = result.output.split("\nMB ")
    assert "batch 1, vocabulary 32768, 124.4 million parameters\n" in work
    assert row(work, "encoder self-attention") == ["15.703", "7.7%"]
    assert row(work, "cross-attention") == ["2.416", "1.2%"]
    assert row(memory, "encoder self-attention")[0] == "246.0"
    assert row(memory, "cross-attention")[0] == "37.8"
    assert "less" not in result.output


def test_several_configs_stand_beside_the_first(run):
    result = run("cost", "deep_blockwise", "deep_pyramidion")
    work, memory = result.output.split("\nMB ")
    assert row(work, "encoder self-attention") == ["38.655", "7.4%", "15.703", "7.7%", "2.46x"]
    assert row(memory, "encoder self-attention")[::2] == ["605.6", "246.0", "2.46x"]
    assert "less: how many times less than deep_blockwise." in result.output


def test_lengths_change_the_count(run):
    result = run("cost", "vanilla", "--source-tokens", 4096, "--target-tokens", 2048, "--batch", 3, "--vocab-size", 10)
    assert result.output.startswith("vanilla: documents of 4096 tokens, summaries of 2048, batch 3, vocabulary 10,")
    # two layers, 2 n n d
    assert row(result.output, "encoder self-attention")[0] == f"{3 * 2 * 2 * 4096**2 * 512 / 1e9:.3f}"
    assert row(result.output, "output layer")[0] == f"{3 * 2048 * 512 * 10 / 1e9:.3f}"


def test_a_file_and_its_overrides_are_read(run):
    result = run("cost", DEEP, "task.max_source_positions=4096", "task.max_target_positions=300")
    assert result.exit_code == 0, result.output
    assert f"{DEEP}: documents of 4096 tokens, summaries of 300," in result.output
    # What is too long for a column is cut.
    assert "  ...table3/deep_pyramidion.yaml   share\n" in result.output


def test_the_memory_of_every_preset_is_counted(run):
    result = run("cost", "lsh", "--check")
    assert result.exit_code == 0
    assert row(result.output.split("\nMB ")[1], "encoder self-attention")[0] == "1,495.5"
    assert "All figures are equal." in result.output


def test_the_check_shows_both_figures(run):
    result = run("cost", "deep_pyramidion", "--check")
    assert result.exit_code == 0
    assert "deep_pyramidion, small: documents of 512 tokens, summaries of 32," in result.output
    _, small = result.output.split("small:")
    assert row(small, "encoder self-attention") == ["2,555,904"] * 2 + ["678,912"] * 2
    assert "All figures are equal." in small


def test_a_check_that_fails_is_an_error(run, monkeypatch):
    forward = BlockwiseAttention.forward

    def shirk(self, q, k, v, *rest, **named):
        return v if q.device.type == "cuda" else forward(self, q, k, v, *rest, **named)

    monkeypatch.setattr(BlockwiseAttention, "forward", shirk)
    result = run("cost", "vanilla", "blockwise", "--check")
    assert result.exit_code == 1
    assert "Figures differ." in result.output
    assert result.stderr == "Error: What is counted differs from a run for blockwise.\n"


def test_all_numbers_are_written(run, tmp_path):
    out = tmp_path / "cost.json"
    assert run("cost", "transpooler", "lsh", "--check", "--json", out).exit_code == 0
    written = json.loads(out.read_text())
    pooled, hashed = written["configs"]
    assert pooled["lengths"] == {"source": 8192, "target": 512, "batch": 1, "vocab_size": 32768}
    assert pooled["matrix_products"]["scoring and pooling"] == pooled["weighted_sums"] == 8192 * 512
    assert pooled["activation_bytes"]["encoder projections"] == 2 * 8192 * 512 * 4
    # Heads are joined to a tensor of their own, which the last projection keeps as well.
    assert hashed["activation_bytes"]["encoder projections"] == 2 * 2 * 8192 * 512 * 4
    assert written["checks"]["lsh"]["agrees"] is True


@for_each(
    ("arguments", "sentence"),
    [
        (["model.embed_dim=64"], "At least one config must be named, but only overrides are: model.embed_dim=64."),
        (["vanilla", "vanilla"], "CONFIG must name another one each time, but vanilla comes twice."),
        (["vanilla", "a=1"], "An override of a preset must be model.FIELD=VALUE, task.max_source_positions=N or "),
        ([DEEP, "--json", DEEP], f"--json must not replace one of the inputs, but is {DEEP}."),
        (
            [DEEP, "--source-tokens", "9000"],
            "--source-tokens must be at most 8192, as table3/deep_pyramidion says",
        ),
        (
            [DEEP, "--target-tokens", "1025"],
            "--target-tokens must be at most 1024, as table3/deep_pyramidion says",
        ),
        ([DEEP, "model.width=3"], f"{DEEP} cannot be composed: "),
        (["vanila"], "The config must be a preset (vanilla, "),
    ],
)
def test_a_wrong_argument_is_one_sentence(fail, arguments, sentence):
    assert fail("cost", *arguments).startswith(sentence)


def test_a_length_below_one_is_refused(run):
    result = run("cost", "vanilla", "--batch", 0)
    assert result.exit_code == 2
    assert "Invalid value for '--batch'" in result.stderr


def test_the_help_has_an_example(run):
    assert "pyramidions cost deep_blockwise deep_pyramidion --check" in run("cost", "--help").output


def test_a_vocabulary_without_a_token_of_text_is_refused():
    # Markers, padding and the like come before tokens of text.
    with pytest.raises(UserError, match="^`vocab_size` must be at least 5, but is 4"):
        cost_of(preset("vanilla"), Lengths(vocab_size=4))
