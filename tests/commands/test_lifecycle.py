"""What an architecture goes through: training, a kill, resumption, generation, scores, export, summaries."""

import json
import lzma
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from conftest import SAMPLE
from fairseq_commands import TASK, kill_at, run
from tiny_presets import tiny_fields

from pyramidions.cli import main
from pyramidions.data.folder import DataFolder

HASHES = "lsh(bucket_size=16, num_hashes=2, local_heads=0)"
# What makes each preset small; its layers and parts are its own.
SMALL = {
    "terraformer": {"self_attention": HASHES, "decoder_self_attention": HASHES},
    "terraformer_pyramidion": {
        "self_attention": "blockwise(block_size=32)",
        "pooling_lengths": "None,64,16,None,None,None",
    },
    "discourse_pointer": {"self_attention": "segments(segment_length=32)"},
}
#: Those that need a vocabulary with markers.
MARKED = ("discourse_pointer",)
TRAINING = [
    *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed"),
    *("--batch-size", "4", "--seed", "1", "--log-format", "simple", "--log-interval", "1", "--num-workers", "0"),
    # An epoch has six updates: the run is killed in the first, and ends in the second.
    *("--max-update", "8", "--save-interval-updates", "4", "--disable-validation", "--no-epoch-checkpoints"),
]
SHORT = ["--beam", "2", "--min-len", "4"]


def train_command(data: DataFolder, save_dir: Path, arch: str) -> list[object]:
    fields = {**tiny_fields(arch), **SMALL.get(arch, {}), "max_source_positions": 256, "max_target_positions": 48}
    sizes = [
        word
        for name, value in fields.items()
        if not isinstance(value, bool)
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    return ["fairseq-train", data.path, *TASK, "--arch", arch, *sizes, *TRAINING, "--save-dir", save_dir]


def pyramidions(*words: object) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    # Without the bar that a slow machine shows.
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch",
    ["scaling", "deep_scaling", "terraformer", "terraformer_pyramidion", "toy_vanilla", "toy_terraformer", *MARKED],
)
def test_a_killed_training_ends_bit_for_bit_like_a_whole_one_and_its_export_writes_what_fairseq_writes(
    arch: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data: DataFolder = request.getfixturevalue("labelled_data" if arch in MARKED else "data")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = run(*train_command(data, whole, arch))
    assert done.returncode == 0, done.stdout
    kill_at(5, train_command(data, killed, arch))
    rest = run(*train_command(data, killed, arch))
    assert rest.returncode == 0 and "Loaded checkpoint" in rest.stdout, rest.stdout
    assert "num_updates=8," in rest.stdout and "num_updates=4," not in rest.stdout
    first, second = (torch.load(folder / "checkpoint_last.pt", weights_only=True) for folder in (whole, killed))
    for part in ("model", "last_optimizer_state"):
        torch.testing.assert_close(first[part], second[part], rtol=0, atol=0)

    checkpoint = killed / "checkpoint_last.pt"
    generate = ["fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", checkpoint]
    done = run(*generate, *SHORT, "--max-len-b", "12", "--batch-size", "4", "--results-path", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "n=10" in pyramidions("score", tmp_path / "generate-test.txt", "--data", data.path)

    pyramidions("export", checkpoint, tmp_path / "export")
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        articles = [json.loads(next(papers))["article"] for _ in range(2)]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in articles))
    lines = pyramidions(
        *("summarize", tmp_path / "export", tmp_path / "papers.jsonl", *SHORT),
        *("--max-len", "12", "--json", "--device", "cpu", "--precision", "float32"),
    ).splitlines()
    hypotheses = dict(re.findall(r"^D-(\d+)\t\S+\t(.*)$", (tmp_path / "generate-test.txt").read_text(), re.MULTILINE))
    assert [json.loads(line)["summary"] for line in lines] == [hypotheses["0"], hypotheses["1"]]
