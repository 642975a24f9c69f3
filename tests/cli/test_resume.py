"""An interrupted run goes on where it stopped, and ends in the bytes of one that was never interrupted."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from invoking import fail, run, succeed
from refusals import refused
from small_language_models import saved

from pyramidions.cli import extracting, job
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.cli.worker import Result
from pyramidions.documents.source import DocumentOrigin
from pyramidions.files import resumable

WORDS = "bees fly fast a bee with ruler".split()
INPUTS = 100


def text(number: int) -> str:
    return " ".join(WORDS[(number * step) % 7] for step in range(1, 5 + number % 9)) + ". A bee."


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return inputs of which two cannot be read, with ids that come twice."""
    lines = [json.dumps({"text": text(number), "id": f"id {number % 60}"}) for number in range(INPUTS)]
    lines[40], lines[41] = "no JSON", '{"text": " "}'
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def left(out: Path) -> list[str]:
    return sorted(path.name for path in out.parent.iterdir() if path.name.startswith("out"))


@pytest.fixture
def interrupted(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a command whose run was interrupted when some of its groups were done."""
    command = ["extract", corpus, "--sentences", 1, "-o", corpus.with_name("out.jsonl")]
    outline, seen = extracting.document_outline, list[object]()

    def stops(*arguments: object) -> object:
        seen.append(arguments)
        if len(seen) == 70:
            raise KeyboardInterrupt
        return outline(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(extracting, "document_outline", stops)
        done = run(*command)
    assert done.exit_code == 130 and f"{command[-1]}.partial keeps what is done; --resume continues it." in done.stderr
    return command


def test_an_interrupted_run_goes_on_to_the_same_bytes_notes_and_status(
    corpus: Path, interrupted: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = corpus.with_name("out.jsonl"), corpus.with_name("whole.jsonl")
    expected = run(*interrupted[:-1], whole)
    assert left(out) == ["out.jsonl.partial", "out.jsonl.progress"]
    partial = corpus.with_name("out.jsonl.partial")
    done_before = json.loads(corpus.with_name("out.jsonl.progress").read_text())["inputs"]
    # Behind the last whole group.
    with partial.open("ab") as file:
        file.write(b'{"id": "torn')
    outline, seen = extracting.document_outline, list[object]()
    monkeypatch.setattr(extracting, "document_outline", lambda *given: (seen.append(given), outline(*given))[1])
    sizes: list[float] = []
    add = ReadingReport.add
    monkeypatch.setattr(ReadingReport, "add", lambda report, size: (sizes.append(size), add(report, size))[1])
    done = run(*interrupted, "--resume")
    # The lines that cannot be read were told by the first run.
    assert done.exit_code == 1
    sections, method = done.stderr.splitlines()
    assert sections == "98 of 98 documents had no headings and counted as one section."
    assert method.startswith("98 of 98 documents were extracted by the method hiporank (not English, or not of 15 to ")
    assert expected.exit_code == 1 and expected.stderr.endswith(done.stderr)
    assert out.read_bytes() == whole.read_bytes() and left(out) == ["out.jsonl"]
    assert b'"id": "id 1#2"' in out.read_bytes()
    assert 0 < done_before == INPUTS - len(seen)
    # The bar begins behind what is done.
    assert 0 < sizes[0] < 2 * corpus.stat().st_size


def test_what_is_done_stays_until_it_is_removed(corpus: Path, interrupted: list[object]) -> None:
    partial, progress = (corpus.with_name(f"out.jsonl.{end}") for end in ("partial", "progress"))
    assert fail(*interrupted).startswith(f"{partial} holds what an interrupted run has done: go on with --resume, or ")
    progress.unlink()
    assert run(*interrupted).exit_code == 1
    assert left(corpus.with_name("out.jsonl")) == ["out.jsonl"]
    done = run(*interrupted, "--resume")
    assert "No interrupted run is left: this one begins at the first document.\n" in done.stderr


def test_other_settings_or_inputs_are_refused(corpus: Path, interrupted: list[object]) -> None:
    begin = "--resume needs the settings of the interrupted run, but"
    assert fail(*interrupted, "--resume", "--words", 9) == f"{begin} --words differs: none then, 9 now."
    assert "--method differs" in fail(*interrupted, "--resume", "--method", "lead")
    with corpus.open("a") as file:
        file.write("{}\n")
    assert fail(*interrupted, "--resume").startswith(f"{begin} what FILES holds differs: 1 file of")
    assert left(corpus.with_name("out.jsonl")) == ["out.jsonl.partial", "out.jsonl.progress"]
    other = corpus.with_name("other")
    other.write_text("a text")
    assert job._state([corpus, other]) == job._state([corpus, other]) != job._state([other, corpus])


@pytest.mark.parametrize("content", ["", "[]", '{"settings": {}, "inputs": 1}', "[" * 100_000])
def test_damaged_progress_is_refused(corpus: Path, interrupted: list[object], content: str) -> None:
    progress = corpus.with_name("out.jsonl.progress")
    progress.write_text(content)
    assert fail(*interrupted, "--resume") == f"{progress} is damaged: remove it, and begin again without --resume."


def test_lines_that_are_damaged_or_gone_are_missed(corpus: Path, interrupted: list[object]) -> None:
    partial, progress = (corpus.with_name(f"out.jsonl.{end}") for end in ("partial", "progress"))
    partial.write_bytes(b"\0" * partial.stat().st_size)
    assert fail(*interrupted, "--resume").startswith(f"{partial} is damaged: ")
    partial.write_text("")
    assert fail(*interrupted, "--resume").startswith(f"{progress} does not fit the lines beside it: ")


def test_a_run_that_fails_before_its_first_group_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A bee.")
    fail("extract", tmp_path / "a.txt", "--method", "lead(x=1)", "-o", tmp_path / "out.jsonl")
    (tmp_path / "out.jsonl").write_text('{"id": "a", "name": "a", "summary": "as it was"}\n')
    (tmp_path / "b.txt").write_text("")
    assert "b.txt" in fail("extract", tmp_path / "b.txt", "-o", tmp_path / "out.jsonl")
    assert left(tmp_path / "out.jsonl") == ["out.jsonl"] and "as it was" in (tmp_path / "out.jsonl").read_text()


def start(*command: object) -> "subprocess.Popen[bytes]":
    program = Path(sys.executable).with_name("pyramidions")
    return subprocess.Popen([program, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_behind_a_group(partial: Path, *command: object) -> int:
    """Kill a run behind a group that it wrote itself; return the bytes that it leaves."""
    before = partial.stat().st_size if partial.exists() else 0
    process = start(*command)
    while process.poll() is None and not (partial.exists() and partial.stat().st_size > before + 1000):
        time.sleep(0.001)
    assert process.poll() is None, "it ended before it could be killed"
    process.kill()
    process.communicate()
    return partial.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["summarize", pytest.param("segments", marks=pytest.mark.nightly)])
def test_a_run_that_is_killed_ends_the_same(kind: str, whole_models: dict[str, Path], tmp_path: Path) -> None:
    corpus, out = tmp_path / "corpus.jsonl", tmp_path / "out.jsonl"
    corpus.write_text("".join(f"{json.dumps({'text': text(number)})}\n" for number in range(1500)))
    command = {
        "summarize": ["summarize", whole_models["plain"], corpus, "--beam", 2, "--max-len", 8, "--batch-size", 4],
        "segments": ["segments", saved(tmp_path, "gumbel"), corpus],
    }[kind]
    succeed(*command, "-o", tmp_path / "whole.jsonl")
    killed = [*command, "-o", out, "--resume"]
    sizes = [kill_behind_a_group(tmp_path / "out.jsonl.partial", *killed) for _ in range(2)]
    assert 0 < sizes[0] < sizes[1] and not out.exists()
    succeed(*killed)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes() and left(out) == ["out.jsonl"]
    assert out.read_bytes().count(b"\n") == 1500


def test_a_file_that_another_process_finishes_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.jsonl"

    def finish(*_: object) -> None:
        (tmp_path / "out.jsonl.partial").replace(out)
        out.write_text("theirs")

    monkeypatch.setattr(resumable, "lock", finish)
    with refused("out.jsonl"), resumable.resumable_file(out, {}, False):
        pass
    assert out.read_text() == "theirs" and [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_what_utf_8_cannot_spell_does_not_end_a_run() -> None:
    line = job._line(Result(DocumentOrigin("a", None, 1), {"query": "caf\udce9"}), lambda _: "1")
    assert json.loads(line.encode())["query"] == "caf?"
