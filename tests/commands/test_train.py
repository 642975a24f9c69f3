"""`pyramidions train`, run for real: killed and stopped on the way, and gone on with."""

import json
import lzma
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyramidions.inference import Summarizer

ROOT = Path(__file__).parents[2]


def papers(path: Path) -> Path:
    """Write 200 real papers, cut so that a step takes a moment."""
    with lzma.open(ROOT / "data/sample/train.jsonl.xz", "rt") as file, path.open("w") as out:
        for line in file:
            paper = json.loads(line)
            short = {**paper, "article": paper["article"][:3000], "abstract": paper["abstract"][:400]}
            out.write(json.dumps(short) + "\n")
    return path


def start(folder: Path, *more: str) -> "subprocess.Popen[str]":
    program = Path(sys.executable).with_name("pyramidions")
    # Some minutes are enough for a model that says something.
    flags = ("--cpu", "--kind", "extractor", "--hours", "0.02", "--vocab-size", "600", *more)
    return subprocess.Popen(
        [program, "train", "papers.jsonl", "-o", "model", *flags],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def stop(process: "subprocess.Popen[str]", number: signal.Signals, when: Callable[[], bool]) -> tuple[str, str]:
    """Send a signal as soon as something is so; return what was printed."""
    while not when():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(number)
    return process.communicate()


@pytest.mark.slow
def test_200_papers_become_a_model_though_the_run_is_stopped_twice(tmp_path: Path) -> None:
    papers(tmp_path / "papers.jsonl")
    work = tmp_path / "model.work"

    process = start(tmp_path)
    printed, errors = stop(process, signal.SIGTERM, lambda: (work / ".data.partial").is_dir())
    assert process.returncode == 143
    assert "200 documents; held out by a hash of their ids: 20 for test and 10 for valid" in printed
    assert "An extractor will be trained on the CPU: --kind asks for it" in printed
    assert "Stopped. The same command goes on from here." in errors and "Traceback" not in errors
    assert not (work / "data").exists()

    process = start(tmp_path)
    log = work / "train.log"
    # In the first epoch.
    printed, errors = stop(process, signal.SIGINT, lambda: log.exists() and '"num_updates": "2"' in log.read_text())
    assert process.returncode == 130 and "begin training epoch 2" not in log.read_text()
    assert "1 of 6: documents, done before" in printed and "$(pyramidions user-dir)" in printed
    kept = re.search(r"Stopped\. (\d+) updates are saved\. The same command goes on from here", errors)
    assert kept is not None, errors

    process = start(tmp_path)
    printed, _ = stop(process, signal.SIGKILL, lambda: "begin training epoch 3" in log.read_text())
    assert f"It goes on after {kept[1]} updates." in printed

    process = start(tmp_path)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "2 of 6: data, done before" in printed and "It goes on after " in printed
    for system in ("extractor", "hiporank", "lead"):
        assert f"\n{system} " in printed
    assert "ROUGE-1" in printed and "Next: pyramidions extract --method " in printed
    scores = json.loads((work / "scores.json").read_text())
    assert set(scores["systems"]) == {"extractor", "hiporank", "lead"}
    assert 0 < scores["systems"]["extractor"]["rouge1"]["mean"] <= 100
    assert {"config.json", "model.safetensors", "sentencepiece.model", "README.md"} <= {
        path.name for path in (tmp_path / "model").iterdir()
    }
    assert "| extractor | " in (tmp_path / "model" / "README.md").read_text()

    again = start(tmp_path)
    printed, _ = again.communicate()
    assert again.returncode == 0 and printed.count("done before") == 6


@pytest.mark.slow
def test_an_exported_summarizer_writes_what_was_scored(tmp_path: Path) -> None:
    papers(tmp_path / "papers.jsonl")
    process = start(tmp_path, "--kind", "summarizer", "--hours", "0.003")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    lines = (tmp_path / "model.work" / "generate-test.txt").read_text().splitlines()
    found = {
        int(at[2:]): (float(score), text)
        for at, score, text in (each.split("\t") for each in lines if each[:2] == "D-")
    }
    tests = (tmp_path / "model.work" / "documents" / "test.jsonl").read_text().splitlines()
    articles = [json.loads(line)["article"] for line in tests]
    written = Summarizer.from_pretrained(tmp_path / "model", "cpu").summarize(articles)
    assert found.keys() == set(range(len(written)))
    # fairseq's scores are to the base 2.
    scores = [found[place][0] * math.log(2) for place in range(len(written))]
    assert [summary.score for summary in written] == pytest.approx(scores, rel=1e-2)
    # A model of a few updates finds some tokens equally likely, and batches of another shape round differently.
    # The papers have no capitals, which ours adds.
    same = [found[place][1] == summary.text.lower() for place, summary in enumerate(written)]
    assert sum(same) >= 0.5 * len(written)
    assert "no repeated 3-grams" in (tmp_path / "model" / "README.md").read_text()
