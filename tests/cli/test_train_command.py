"""`pyramidions train`: plans and refusals; tests/commands has a whole run."""

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from tables import for_each

import pyramidions.plugin  # noqa: F401
from pyramidions.base.errors import UserError
from pyramidions.files.processes import USER_DIR
from pyramidions.plugin.tasks.schedule import doubts, schedule_of
from pyramidions.runs import training as module
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
def begun(papers_file: Path, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The work folder of a run that was stopped before its first step."""

    def stop(_: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "go", stop)
    done = run("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert done.exit_code == 130 and "Stopped. The same command goes on from here." in done.stderr
    return tmp_path / "model.work"


def state_of(work: Path) -> State | None:
    return State.read(work / "run.json", writer="", remedy="")


def typed(output: str) -> list[str]:
    """The words of the command in what was printed."""
    lines = output[output.index("fairseq-train") :].replace("\\\n", " ").splitlines()
    return [USER_DIR if word == "$(pyramidions user-dir)" else word for word in shlex.split(lines[0])]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(run, papers_file, tmp_path):
    output = run("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer", "--dry-run").stdout
    assert "35 documents; held out by a hash of their ids: 4 for test and 2 for valid" in output
    assert "A summarizer will be trained on the CPU: --kind asks for it." in output
    assert [path.name for path in tmp_path.iterdir()] == ["papers.jsonl"]


def test_without_fairseq_a_run_is_refused_before_the_work_and_a_plan_says_so(
    run, fail, papers_file, tmp_path, monkeypatch
):
    monkeypatch.setattr("pyramidions.runs.training.find_spec", lambda name: None)
    sentence = (
        "Training a network needs fairseq, which is not installed: scripts/setup.sh train brings it; --kind concepts "
        "needs none."
    )
    arguments = ("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert sentence in run(*arguments, "--dry-run").stdout
    assert fail(*arguments) == sentence
    assert [path.name for path in tmp_path.iterdir()] == ["papers.jsonl"]


@pytest.mark.parametrize("kind", ["summarizer", "extractor"])
@pytest.mark.parametrize("flags", [["--cpu", "--hours", "1.5"], ["--cpu", "--seed", "7"]])
def test_fairseq_takes_the_command_that_is_shown(run, papers_file, tmp_path, kind, flags):
    output = run("train", papers_file, "-o", tmp_path / "m", "--kind", kind, "--dry-run", *flags).stdout
    program, *words = typed(output)
    assert program == "fairseq-train"
    parsed = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    assert parsed.common.cpu and parsed.common.log_format == "json"
    assert parsed.checkpoint.save_dir == str(tmp_path / "m.work" / "checkpoints")
    assert parsed.optimization.stop_time_hours == (1.5 if "--hours" in flags else 0)
    assert parsed.common.seed == (7 if "--seed" in flags else 1)


@for_each(("documents", "gpus"), [(30, 0), (200, 1), (2001, 1), (30000, 4), (120000, 8), (900000, 3)])
def test_fairseq_takes_the_flags_for_any_corpus_and_nothing_is_doubted_about_them(documents, gpus):
    corpus = CorpusSize(documents, 4000, {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700})
    found = KINDS["summarizer"].schedule(corpus, Machine(gpus, 40e9), None)
    words = ["data", "--user-dir", USER_DIR, "--task", "long_document_summarization", *found.flags]
    parsed = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    batches = math.ceil(math.ceil(documents / parsed.dataset.batch_size) / max(gpus, 1))
    schedule = schedule_of(parsed.task, batches)
    assert schedule is not None and doubts(schedule) == []
    assert found.updates % schedule.epoch_updates == 0 and schedule.max_update == found.updates


def test_the_plan_is_kept_before_the_first_step(begun, papers_file):
    facts = json.loads((begun / "run.json").read_text())
    assert facts["arguments"] == asdict(Arguments(str(papers_file), "summarizer", gpus=0))
    assert facts["plan"]["held_out"] == {"train": 29, "test": 4, "valid": 2} and facts["done"] == {}


def test_other_arguments_are_refused(fail, begun, papers_file, tmp_path):
    sentence = fail("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer", "--seed", 2)
    assert sentence == (
        f"{begun} was begun with other arguments (--seed was 1, and is 2): give another MODEL, or --overwrite to begin "
        "anew."
    )


def test_changed_documents_are_refused_and_touched_ones_are_not(fail, run, begun, papers_file, tmp_path):
    arguments = ("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    papers_file.touch()
    assert f"Goes on with {begun}." in run(*arguments).stdout
    papers_file.write_text(papers_file.read_text().replace("ban", "den"))
    sentence = fail(*arguments)
    assert sentence.startswith(f"{papers_file} has changed since {begun} was begun: give another MODEL, or --overwrite")


def test_overwrite_begins_anew(run, begun, papers_file, tmp_path):
    (begun / "old").write_text("of the first run")
    run("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer", "--seed", 2, "--overwrite")
    state = state_of(begun)
    assert state is not None and state.facts["arguments"]["seed"] == 2 and not (begun / "old").exists()


def test_a_stopped_overwrite_goes_on_without_the_option(run, begun, papers_file, tmp_path):
    arguments = ("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    stopped = run(*arguments, "--overwrite")
    assert stopped.exit_code == 130
    assert "Stopped. The same command without --overwrite goes on from here." in stopped.stderr
    (begun / "made").write_text("since then")
    assert f"Goes on with {begun}." in run(*arguments).stdout and (begun / "made").exists()


def test_an_overwrite_that_is_stopped_while_it_removes_files_can_be_repeated(run, begun, papers_file, tmp_path):
    (begun / "a").touch()
    arguments = ("train", papers_file, "-o", tmp_path / "model", "--cpu", "--overwrite")
    unlink, listed = Path.unlink, Path.iterdir

    def state_first(path: Path) -> Iterator[Path]:
        return iter(sorted(listed(path), key=lambda entry: entry.name != "run.json"))

    def unlink_once(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", unlink_once)
        patch.setattr(Path, "iterdir", state_first)
        run(*arguments)
    stopped = run(*arguments)
    assert stopped.exit_code == 130 and "Stopped." in stopped.stderr and not (begun / "a").exists()


def test_a_work_folder_of_something_else_is_refused(fail, papers_file, tmp_path):
    work = tmp_path / "model.work"
    work.mkdir()
    (work / "thesis.tex").touch()
    sentence = f"{work} holds files that `pyramidions train` did not make; give another MODEL."
    assert fail("train", papers_file, "-o", tmp_path / "model", "--cpu", "--overwrite") == sentence
    (work / "thesis.tex").unlink()
    work.rmdir()
    work.touch()
    assert "must be a folder, but is a file" in fail("train", papers_file, "-o", tmp_path / "model", "--cpu")


@for_each("model", [".", "..", "/"])
@for_each("flags", [[], ["--dry-run"]])
def test_a_model_without_a_name_is_refused(fail, papers_file, model, flags):
    sentence = f"MODEL must end in the name of a folder to make, but is {model}."
    assert fail("train", papers_file, "-o", model, "--cpu", *flags) == sentence


def test_two_runs_on_one_model_are_refused(fail, begun, papers_file, tmp_path, monkeypatch):
    def held(folder: Path) -> None:
        assert folder == begun
        raise BlockingIOError

    monkeypatch.setattr(module, "hold_folder", held)
    sentence = fail("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert sentence == f"Another `pyramidions train` works on {tmp_path / 'model'}: wait for it, or stop it."


def test_documents_that_cannot_be_prepared_leave_nothing(fail, papers_file, tmp_path):
    # Repeated ids within a split that was given show when it is prepared.
    folder = tmp_path / "folder"
    folder.mkdir()
    lines = papers_file.read_text().splitlines()
    for split, kept in (("train", lines[:20]), ("valid", lines[20:22] * 2), ("test", lines[22:])):
        (folder / f"{split}.jsonl").write_text("\n".join(kept) + "\n")
    sentence = fail("train", folder, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert "came before; ids must be unique; --number-repeated-ids numbers them." in sentence
    assert not (tmp_path / "model.work").exists()


@pytest.mark.parametrize("split", ["valid", "test"])
def test_each_given_split_is_read_before_anything_is_written(fail, papers_file, tmp_path, split):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("train", "valid", "test"):
        (folder / f"{name}.jsonl").write_text("{" if name == split else papers_file.read_text())
    arguments = ("train", folder, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert f"{split}.jsonl, line 1: must be a JSON object" in fail(*arguments, "--dry-run")
    fail(*arguments)
    assert not (tmp_path / "model.work").exists()


@pytest.mark.parametrize("finished", [True, False])
def test_an_error_of_the_disk_loses_nothing(fail, begun, papers_file, tmp_path, monkeypatch, finished):
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
    arguments = ("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert fail(*arguments) == "Writing data failed (No space left on device)."
    assert (begun / "checkpoints").is_dir() and (begun / "run.json").exists()


def test_an_error_of_the_disk_in_the_first_call_leaves_what_can_go_on(fail, papers_file, tmp_path, monkeypatch):
    def fill_the_disk(run: Run) -> None:
        (run.places.work / ".data.partial").mkdir()
        raise UserError("Writing data failed (No space left on device).")

    monkeypatch.setattr(Run, "go", fill_the_disk)
    fail("train", papers_file, "-o", tmp_path / "model", "--cpu", "--kind", "summarizer")
    assert {path.name for path in (tmp_path / "model.work").iterdir()} == {"run.json", ".data.partial"}


def test_a_vocabulary_that_is_asked_for_is_never_made_smaller(fail, papers_file, tmp_path):
    arguments = ("--cpu", "--kind", "summarizer", "--vocab-size", 30_000)
    sentence = fail("train", papers_file, "-o", tmp_path / "model", *arguments)
    assert sentence.startswith("--vocab-size must be at most ") and sentence.endswith("but is 30000.")


def test_help_shows_an_example(run):
    assert "pyramidions train papers.jsonl -o my-model" in run("train", "--help").stdout
