import json
from pathlib import Path

import torch
from tables import for_each

from pyramidions.nn import BeamSearch

CONFIGS = Path(__file__).parents[2] / "configs"
ROW = CONFIGS / "table3" / "deep_pyramidion.yaml"
SMALL = [
    *("model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "model.decoding_beam=2"),
    *("task.max_source_positions=48", "task.max_target_positions=9"),
    *("--train-batch", 3, "--micro-batch", 2, "--decode-batch", 2, "--decode-tokens", "3,4", "--vocab-size", 50),
    *("--repeats", 2, "--warmup", 0),
]


def test_a_table_has_a_row_for_each_config_and_ratios_to_the_first(run, monkeypatch):
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    result = run("time", ROW, CONFIGS / "base.yaml", *SMALL)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["config", "train_step,", "s", "decode_3,", "s", "decode_4,", "s"]
    assert [line.split()[0] for line in lines[1:3]] == ["table3/deep_pyramidion", "base"]
    assert lines[1].count(" ± ") == lines[2].count(" ± ") == 3
    assert lines[4] == "Ratio of medians to table3/deep_pyramidion [lowest, highest of two neighbouring turns]:"
    assert lines[5].startswith("base ") and lines[5].count("[") == 3
    assert lines[-1].startswith("mean ± standard deviation of 2 turns after 0 for warm-up | training batch 3 in 2 ")
    assert "decode_4: 100%" in result.stderr


TINY_PRESET = [
    *("pyramidion", "model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "model.decoding_beam=2"),
    *("--source-tokens", 48, "--target-tokens", 9, "--vocab-size", 50, "--repeats", 2, "--warmup", 0),
]


def test_a_cpu_takes_small_batches_of_a_preset_and_says_beforehand_what_it_does(run):
    result = run("time", *TINY_PRESET)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[:1] == [
        "On the CPU: a training step of 2 documents, 32 tokens written for 2 documents, of 48 tokens each; "
        "2 turns of 1 model.",
    ]
    assert result.stdout.splitlines()[0].split() == ["config", "train_step,", "s", "decode_32,", "s"]


def test_one_config_is_compared_with_nothing(run):
    result = run("time", ROW, *SMALL)
    assert result.exit_code == 0, result.output
    assert "Ratio" not in result.stdout


def test_all_numbers_are_in_the_json_file(run, tmp_path):
    out = tmp_path / "times.json"
    result = run("time", ROW, *SMALL, "--precision", "bf16", "--seed", 5, "--target-tokens", 6, "--json", out)
    assert result.exit_code == 0, result.output
    told = json.loads(out.read_text())
    assert told["overrides"] == SMALL[:6]
    assert (told["seed"], told["precision"], told["device"], told["micro_batch"]) == (5, "bf16", "cpu", 2)
    (config,) = told["configs"]
    assert config["config"] == "table3/deep_pyramidion"
    assert (config["source_tokens"], config["target_tokens"], config["beam"]) == (48, 6, 2)
    for phase in ("train_step", "decode_3", "decode_4"):
        assert len(config[phase]["seconds"]) == 2
        assert {"mean", "standard_deviation", "median", "peak_bytes"} < set(config[phase])


def test_memory_that_ran_out_is_one_sentence(fail, monkeypatch):
    def out(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(BeamSearch, "__call__", out)
    assert fail("time", ROW, *SMALL) == (
        "Memory ran out in decoding 3 tokens with table3/deep_pyramidion, "
        "which takes 2 documents at a time (--decode-batch)."
    )


@for_each(
    ("arguments", "sentence"),
    [
        (["model.dropout=0"], "At least one config must be named, but only overrides are: model.dropout=0."),
        (["vanilla", "model.dropout=x"], "vanilla: `dropout` must be a number, but is 'x'."),
        (
            [ROW, "--source-tokens", 9000],
            "--source-tokens must be at most 8192, as table3/deep_pyramidion says, but is 9000.",
        ),
        (["vanilla", "--decode-tokens", "0"], "--decode-tokens must be positive and differ, but are (0,)."),
        (["vanilla", "--vocab-size", "5"], "--vocab-size must be at least 10, for the beam of vanilla, but is 5."),
        (["vanilla", "--micro-batch", "65"], "--micro-batch must be at most --train-batch, 2, but is 65."),
        (["vanilla", "--device", "cuda"], "--device must be cpu, but is cuda: torch finds no GPU."),
        (["vanilla", "--json", "no/x.json"], "--json must be a file in a folder that exists, but is no/x.json."),
    ],
)
def test_what_breaks_a_rule_ends_in_one_sentence(fail, monkeypatch, arguments, sentence):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert fail("time", *arguments) == sentence


def test_a_config_that_is_none_is_named(fail):
    assert fail("time", "512").endswith("or a .yaml file in a folder beside base.yaml, but is '512'.")


def test_a_list_of_lengths_that_is_none_exits_with_2(run):
    result = run("time", "vanilla", "--decode-tokens", "256,many")
    assert result.exit_code == 2
    assert "'256,many' is neither none nor a list of numbers like 256,512." in result.stderr
