"""scripts/reproduce/pretrained.sh goes from a pretrained model to scores, and on after an interruption."""

import shutil
import subprocess
from pathlib import Path

import pytest
from small_pretrained import RECIPE, model_of, save

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "reproduce" / "pretrained.sh"
RUN = """# Source: nobody/nothing
lr_scheduler: {_name: polynomial_decay, total_num_update: 2}
optimization: {max_update: 2, lr: [0.001], update_freq: [64]}
dataset: {batch_size: 1, validate_interval: 1}
"""
CORPUS = """# @package _global_
task: {stopping_patience: 0}
model: {decoding_beam: 1, decoding_min_length: 1, decoding_max_length: 8}
"""


#: what the script calls, as programs that only write the files it waits for; training fails with a setting "bad"
PROGRAMS = {
    "pyramidions": """
while (($#)); do
    case $1 in
        import) made=start ;;
        -o) [[ $made != start ]] || touch "$2" ;;
        --out) mkdir -p "$2" && touch "$2/manifest.json" ;;
    esac
    shift
done
""",
    "fairseq-hydra-train": """
for word; do
    case $word in
        checkpoint.save_dir=*) folder=${word#*=} && folder=${folder//\\'/} && mkdir -p "$folder" ;;
        bad=*) exit 1 ;;
    esac
done
touch "$folder/checkpoint_last.pt"
""",
    "fairseq-generate": """
while [[ $1 != --results-path ]]; do shift; done
mkdir -p "$2" && touch "$2/generate-test.txt"
""",
}


def script(*words: object, path: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run the script, and return what it printed."""
    return subprocess.run(
        [str(word) for word in (path, *words)],
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


@pytest.fixture
def with_programs(tmp_path: Path) -> Path:
    """Return the script in a repository whose programs are `PROGRAMS`."""
    for name, text in PROGRAMS.items():
        program = tmp_path / "root" / ".venv" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/usr/bin/env bash\nset -eu\n{text}")
        program.chmod(0o755)
    copied = tmp_path / "root" / "scripts" / "reproduce" / SCRIPT.name
    copied.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, copied)
    return copied


def test_arguments_of_finished_steps_must_stay(with_programs: Path, configs: Path, tmp_path: Path) -> None:
    for name in ("pretrained/other", "corpus/other"):
        shutil.copy(configs / "base.yaml", configs / f"{name}.yaml")
    shutil.copytree(configs, tmp_path / "same configs")
    out = tmp_path / "results of it"
    options = {"--source": "bart", "--data": "my documents", "--out": out, "--configs": configs}

    def called(*settings: str, recipe: str = "small", corpus: str = "mine", **changed: object) -> str:
        given = {**options, **{f"--{name}": value for name, value in changed.items()}}
        words = [word for pair in given.items() for word in pair]
        done = script(recipe, corpus, *words, *settings, path=with_programs)
        return "" if done.returncode == 0 else f"{done.returncode}: {done.stdout}"

    # What failed may be called otherwise.
    assert called("bad=1") == "1: " and (out / "start.pt").exists() and (out / "checkpoints").exists()
    assert called("lr=[1, 2]", "name='a b'") == "" and (out / "trained").exists()
    kept = (out / "arguments").read_text()
    assert len(kept.splitlines()) == 3
    settings = ("lr=[1, 2]", "name='a b'")
    assert called(*settings) == "" == called(*settings, gpus=4)
    sentence = f"2: Finished steps must keep the arguments in {out}/arguments, but now it is "
    for step, changed in (
        ("import", {"source": "led"}),
        ("import", {"recipe": "other"}),
        ("import", {"configs": tmp_path / "same configs"}),
        ("prepare", {"data": "others"}),
        ("train", {"corpus": "other"}),
    ):
        assert called(*settings, **changed).startswith(f"{sentence}{step}: ")  # type: ignore[arg-type]
    for others in ((), (*settings, "seed=2"), ("lr=[1,", "2]", "name='a b'")):
        refused = called(*others)
        assert len(refused.splitlines()) == 1, refused
        assert "must keep" in refused or "must be an option" in refused
    assert (out / "arguments").read_text() == kept
    assert called(*settings, out=tmp_path / "second", source="led") == ""


def test_the_release_of_qmsum_is_read_as_that_corpus(with_programs: Path, configs: Path, tmp_path: Path) -> None:
    shutil.copy(configs / "base.yaml", configs / "corpus" / "qmsum.yaml")
    (tmp_path / "QMSum" / "data" / "ALL").mkdir(parents=True)
    options = ("--data", tmp_path / "QMSum", "--out", tmp_path / "out", "--configs", configs, "--source", "bart")
    done = script("small", "qmsum", *options, path=with_programs)
    assert done.returncode == 0, done.stdout
    assert f"prepare: 'qmsum' '--release' '{tmp_path}/QMSum'" in (tmp_path / "out" / "arguments").read_text()


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
