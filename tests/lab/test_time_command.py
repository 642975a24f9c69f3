import json
from pathlib import Path
from typing import Any

from tables import for_each

CONFIGS = Path(__file__).parents[2] / "configs"
ROW = CONFIGS / "table3" / "deep_pyramidion.yaml"
SMALL = [
    *("model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "model.decoding_beam=2"),
    *("task.max_source_positions=48", "task.max_target_positions=9"),
    *("--train-batch", 3, "--micro-batch", 2, "--decode-batch", 2, "--decode-tokens", "3,4", "--vocab-size", 50),
    *("--repeats", 2, "--warmup", 0),
]


def test_a_table_has_a_row_for_each_config_and_ratios_to_the_first(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "times.json"
    result = run("time", ROW, CONFIGS / "base.yaml", *SMALL, "--target-tokens", 6, "--precision", "bf16", "--json", out)
    assert result.exit_code == 0, result.output
    head, *rows = [line.split() for line in result.stdout.splitlines()]
    assert head == ["train_step,", "s", "decode_3,", "s", "decode_4,", "s"]
    assert [row[0] for row in rows[:2]] == ["table3/deep_pyramidion", "base"]
    assert sum(row[:1] == ["base"] for row in rows) == 2  # seconds, then ratios
    told = json.loads(out.read_text())
    assert told["overrides"] == SMALL[:6] and (told["precision"], told["micro_batch"]) == ("bf16", 2)
    config, _ = told["configs"]
    assert (config["source_tokens"], config["target_tokens"], config["beam"]) == (48, 6, 2)
    assert all(len(config[phase]["seconds"]) == 2 for phase in ("train_step", "decode_3", "decode_4"))


def test_a_cpu_takes_small_batches_of_a_preset(run: Any) -> None:
    tiny = ["--source-tokens", 48, "--target-tokens", 9, "--vocab-size", 50, "--repeats", 2, "--warmup", 0]
    result = run("time", "pyramidion", *SMALL[:4], *tiny)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split() == ["train_step,", "s", "decode_32,", "s"]
    assert "Ratio" not in result.stdout


@for_each(
    ("arguments", "told"),
    [
        (["model.dropout=0"], "model.dropout=0"),
        (["vanila"], "'vanila'"),
        ([ROW, "--source-tokens", 9000], "--source-tokens"),
        (["vanilla", "--micro-batch", "65"], "--micro-batch"),
        (["vanilla", "--json", "no/x.json"], "--json"),
    ],
)
def test_what_breaks_a_rule_is_named(fail: Any, arguments: list[Any], told: str) -> None:
    assert told in fail("time", *arguments)


@for_each("numbers", ["256,many", "0", "4,4"])
def test_a_list_of_lengths_that_is_none_exits_with_2(run: Any, numbers: str) -> None:
    result = run("time", "vanilla", "--decode-tokens", numbers)
    assert result.exit_code == 2 and repr(numbers) in result.stderr
