"""`pyramidions train`: plans, and runs that do not begin or go on; tests/commands has a whole run."""

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from invoking import fail, run

import pyramidions.plugin  # noqa: F401
from pyramidions.base.errors import UserError
from pyramidions.files.processes import USER_DIR
from pyramidions.plugin.tasks.schedule import doubts, schedule_of
from pyramidions.runs import training
from pyramidions.runs.arguments import Arguments
from pyramidions.runs.kinds import KINDS, Machine
from pyramidions.runs.recipe import CorpusSize
from pyramidions.runs.run import Run
from pyramidions.runs.steps import State


@pytest.fixture
def papers_file(papers: Path, tmp_path: Path) -> Path:
    """One file, of 35 documents."""
    path = tmp_path / "papers.jsonl"
    path.write_text((papers / "train.jsonl").read_text() + (papers / "test.jsonl").read_text())
    return path


@pytest.fixture
def model(papers_file: Path, tmp_path: Path) -> tuple[object, ...]:
    """The command that makes a model of them."""
    return "train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer"


@pytest.fixture
def begun(model: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The work folder of a run that was stopped before its first step."""

    def stop(_: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "go", stop)
    done = run(*model)
    assert done.exit_code == 130 and "Stopped. The same command goes on from here." in done.stderr
    return tmp_path / "model.work"


def state_of(work: Path) -> State | None:
    return State.read(work / "run.json", writer="", remedy="")


def typed(output: str) -> list[str]:
    """The words of the command in what was printed."""
    lines = output[output.index("fairseq-train") :].replace("\\\n", " ").splitlines()
    return [USER_DIR if word == "$(pyramidions user-dir)" else word for word in shlex.split(lines[0])]


def test_a_dry_run_says_what_would_be_done(model: tuple[object, ...], tmp_path: Path) -> None:
    output = run(*model, "--dry-run").stdout
    assert "35 documents; held out by a hash of their ids: 4 for test and 2 for valid" in output
    assert "A summarizer will be trained on the CPU: --kind asks for it." in output
    assert [path.name for path in tmp_path.iterdir()] == ["papers.jsonl"]


def test_without_fairseq_a_run_is_refused_before_the_work_and_a_plan_says_so(
    papers_file: Path, model: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyramidions.runs.training.find_spec", lambda name: None)
    sentence = fail(*model)
    assert sentence.startswith("Training a network needs fairseq, which is not installed: scripts/setup.sh train ")
    assert sentence in run(*model, "--dry-run").stdout
    assert [path.name for path in tmp_path.iterdir()] == ["papers.jsonl"]


@pytest.mark.parametrize(("kind", "flag", "value"), [("summarizer", "--hours", 1.5), ("extractor", "--seed", 7)])
def test_fairseq_takes_the_command_that_is_shown(
    papers_file: Path, tmp_path: Path, kind: str, flag: str, value: float
) -> None:
    shown = run("train", papers_file, "-o", tmp_path / "m", "--kind", kind, "--dry-run", "--cpu", flag, value).stdout
    program, *words = typed(shown)
    assert program == "fairseq-train"
    parsed = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    assert parsed.common.cpu and parsed.common.log_format == "json"
    assert parsed.checkpoint.save_dir == str(tmp_path / "m.work" / "checkpoints")
    assert parsed.optimization.stop_time_hours == (value if flag == "--hours" else 0)
    assert parsed.common.seed == (value if flag == "--seed" else 1)


@pytest.mark.parametrize(("documents", "gpus"), [(30, 0), (2001, 1), (900_000, 3)])
def test_fairseq_takes_the_flags_for_any_corpus_and_nothing_is_doubted_about_them(documents: int, gpus: int) -> None:
    corpus = CorpusSize(documents, 4000, {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700})
    found = KINDS["summarizer"].schedule(corpus, Machine(gpus, 40e9), None)
    words = ["data", "--user-dir", USER_DIR, "--task", "long_document_summarization", *found.flags]
    parsed = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    batches = math.ceil(math.ceil(documents / parsed.dataset.batch_size) / max(gpus, 1))
    schedule = schedule_of(parsed.task, batches)
    assert schedule is not None and doubts(schedule) == []
    assert found.updates % schedule.epoch_updates == 0 and schedule.max_update == found.updates


def test_the_plan_is_kept_before_the_first_step(begun: Path, papers_file: Path) -> None:
    facts = json.loads((begun / "run.json").read_text())
    assert facts["arguments"] == asdict(Arguments(str(papers_file), "summarizer", gpus=0))
    assert facts["plan"]["held_out"] == {"train": 29, "test": 4, "valid": 2} and facts["done"] == {}


def test_other_arguments_and_changed_documents_are_refused_and_touched_ones_are_not(
    begun: Path, papers_file: Path, model: tuple[object, ...]
) -> None:
    assert fail(*model, "--seed", 2).startswith(
        f"{begun} was begun with other arguments (--seed was 1, and is 2): give another MODEL, or --overwrite"
    )
    papers_file.touch()
    assert str(begun) in run(*model).stdout
    papers_file.write_text(papers_file.read_text().replace("ban", "den"))
    assert fail(*model).startswith(f"{papers_file} has changed since {begun} was begun: ")


def test_overwrite_begins_anew(begun: Path, model: tuple[object, ...]) -> None:
    (begun / "old").write_text("of the first run")
    stopped = run(*model, "--seed", 2, "--overwrite")
    state = state_of(begun)
    assert state is not None and state.facts["arguments"]["seed"] == 2 and not (begun / "old").exists()
    assert stopped.exit_code == 130 and "--overwrite" in stopped.stderr
    (begun / "made").write_text("since then")
    assert str(begun) in run(*model, "--seed", 2).stdout and (begun / "made").exists()


def test_an_overwrite_that_is_stopped_can_be_repeated(begun: Path, model: tuple[object, ...]) -> None:
    (begun / "a").touch()
    unlink, listed = Path.unlink, Path.iterdir

    def state_first(path: Path) -> Iterator[Path]:
        return iter(sorted(listed(path), key=lambda entry: entry.name != "run.json"))

    def unlink_once(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", unlink_once)
        patch.setattr(Path, "iterdir", state_first)
        run(*model, "--overwrite")
    stopped = run(*model, "--overwrite")
    assert stopped.exit_code == 130 and "Stopped." in stopped.stderr and not (begun / "a").exists()


def test_a_foreign_folder_is_refused(papers_file: Path, model: tuple[object, ...], tmp_path: Path) -> None:
    work = tmp_path / "model.work"
    work.mkdir()
    (work / "thesis.tex").touch()
    assert fail(*model, "--overwrite").startswith(f"{work} holds files that `pyramidions train` did not make")
    (work / "thesis.tex").unlink()
    work.rmdir()
    work.touch()
    assert "must be a folder, but is a file" in fail(*model)


def test_two_runs_on_one_model_are_refused(
    begun: Path, model: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(folder: Path) -> None:
        assert folder == begun
        raise BlockingIOError

    monkeypatch.setattr(training, "hold_folder", held)
    assert fail(*model).startswith(f"Another `pyramidions train` works on {begun.with_suffix('')}: ")


def test_bad_documents_leave_nothing(papers_file: Path, model: tuple[object, ...], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    lines = papers_file.read_text().splitlines()
    # Repeated ids within a split that was given show when it is prepared.
    for split, kept in (("train", lines[:20]), ("valid", lines[20:22] * 2), ("test", lines[22:])):
        (folder / f"{split}.jsonl").write_text("\n".join(kept) + "\n")
    assert "ids must be unique" in fail("train", folder, *model[2:])
    # Other faults before anything is written.
    for split in ("valid", "test"):
        (folder / f"{split}.jsonl").write_text("{")
        assert f"{split}.jsonl, line 1: must be a JSON object" in fail("train", folder, *model[2:], "--dry-run")
        fail("train", folder, *model[2:])
        (folder / f"{split}.jsonl").write_text(papers_file.read_text())
    assert not (tmp_path / "model.work").exists()


@pytest.mark.parametrize("finished", [True, False])
def test_an_error_of_the_disk_loses_nothing(
    begun: Path, model: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, finished: bool
) -> None:
    (begun / "checkpoints").mkdir()
    state = state_of(begun)
    assert state is not None
    for step in ("documents", "data", "training", "summaries", "scores", "export") if finished else ():
        state.note(done={**state.facts["done"], step: {"seconds": 1.0}})

    def fill_the_disk(_: Run) -> None:
        raise UserError("Writing data failed (No space left on device).")

    # The folders of a finished run are missing, as if they had been deleted to free space.
    monkeypatch.undo()
    monkeypatch.setattr(Run, "divide", fill_the_disk)
    assert fail(*model) == "Writing data failed (No space left on device)."
    assert (begun / "checkpoints").is_dir() and (begun / "run.json").exists()


def test_an_error_of_the_disk_in_the_first_call_leaves_what_can_go_on(
    model: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_the_disk(begun: Run) -> None:
        (begun.places.work / ".data.partial").mkdir()
        raise UserError("Writing data failed (No space left on device).")

    monkeypatch.setattr(Run, "go", fill_the_disk)
    fail(*model)
    assert {path.name for path in (tmp_path / "model.work").iterdir()} == {"run.json", ".data.partial"}
