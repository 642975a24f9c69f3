"""scripts/reproduce/pretrained.sh goes from a pretrained model to scores, and on after an interruption."""

import shutil
import subprocess
from pathlib import Path

import pytest
from small_pretrained import RECIPE, model_of, save

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "reproduce" / "pretrained.sh"
RUN = """# Source: nobody/nothing
# Import: --max-source-positions 120 --self-attention blockwise(block_size=40) --pooling-lengths None,8
lr_scheduler: {_name: polynomial_decay, total_num_update: 2}
optimization: {max_update: 2, lr: [0.001], update_freq: [64]}
dataset: {batch_size: 1, validate_interval: 1}
"""
CORPUS = """# @package _global_
task: {stopping_patience: 0}
model: {decoding_beam: 1, decoding_min_length: 1, decoding_max_length: 8}
"""


def script(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the script, and return what it printed."""
    return subprocess.run(
        [str(word) for word in (SCRIPT, *words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    folder = tmp_path / "configs"
    for name, text in (("pretrained/small", RECIPE + RUN), ("corpus/mine", CORPUS)):
        (folder / name).parent.mkdir(parents=True)
        (folder / f"{name}.yaml").write_text(text)
    shutil.copy(ROOT / "configs" / "base.yaml", folder)
    return folder


@pytest.mark.nightly
def test_it_goes_from_a_pretrained_model_to_scores(configs: Path, tmp_path: Path) -> None:
    documents = tmp_path / "documents with a space"
    documents.mkdir()
    line = '{"article": "Bees fly fast over %d roses.", "abstract": "Bees fly."}\n'
    for split, count in (("train", 9), ("valid", 2), ("test", 2)):
        (documents / f"{split}.jsonl").write_text("".join(line % number for number in range(count)))
    out = tmp_path / "results"
    given = ["small", "mine", "--source", save(model_of("bart"), tmp_path / "bart"), "--data", documents]
    given += ["--out", out, "--gpus", 0, "--configs", configs]
    stopped = script(*given, "optimization.max_updates=1")
    assert stopped.returncode != 0 and "max_updates" in stopped.stdout and not (out / "trained").exists()
    done = script(*given, "task.freeze=embeddings")
    assert done.returncode == 0, done.stdout
    assert 'num_updates": "2"' in done.stdout and "rouge1" in (out / "scores.json").read_text()
    again = script(*given, "task.freeze=embeddings")
    assert again.returncode == 0 and "num_updates" not in again.stdout
    for others in ((), ("task.freeze=embeddings", "common.seed=2"), ("task.freeze=embeddings", "--data", configs)):
        refused = script(*given, *others)
        assert refused.returncode == 2 and "must keep the arguments in " in refused.stdout


def test_its_help_is_its_head_and_wrong_arguments_are_one_sentence() -> None:
    lines = script("--help").stdout.splitlines()
    assert lines[0].startswith("Fine-tunes a pretrained model") and lines[-1].startswith("  scripts/reproduce/")
    for words, named in (
        (["bart_base"], "CORPUS"),
        (["bart", "arxiv"], "RECIPE must be one of bart_base_16k_pyramidion, bart_base_4k_blockwise, led_base_16k, "),
        (["led_base_16k", "arXiv"], "CORPUS must be one of arxiv, govreport, pubmed, qmsum, but is arXiv."),
        (["led_base_16k", "qmsum"], "--data"),
        (["led_base_16k", "arxiv", "--gpus", "two"], "--gpus"),
        (["led_base_16k", "arxiv", "fast"], "fast"),
    ):
        done = script(*words)
        assert done.returncode != 0 and named in done.stdout and len(done.stdout.splitlines()) == 1, words
