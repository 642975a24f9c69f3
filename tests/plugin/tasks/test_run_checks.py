"""Settings of a run that contradict each other, in every task."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_commands import train_command

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.plugin.tasks.training_run import TrainingRun
from pyramidions.plugin.tasks.training_task import TrainingTask


def begin(*words: object) -> None:
    """Make the task of a command, and begin its run."""
    parser = options.get_training_parser()
    cfg: Any = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, [str(word) for word in words]))
    task = tasks.setup_task(cfg.task)
    assert isinstance(task, TrainingTask)
    task.begin_training(from_checkpoint=False)


@pytest.fixture(params=["documents", "toy sequences"])
def command(request: pytest.FixtureRequest, data: DataFolder, tmp_path: Path) -> list[object]:
    if request.param == "documents":
        return train_command(data, tmp_path / "run")[1:]
    words = ["--task", "toy_sequences", "--arch", "vanilla", "--optimizer", "adam", "--lr-scheduler", "fixed"]
    return [*words, "--save-dir", tmp_path / "run"]


def takes(task: str, model: str) -> bool:
    made = object.__new__(tasks.TASK_REGISTRY[task])
    made.cfg = SimpleNamespace(_name=task)
    try:
        made.check_kind(SimpleNamespace(_name=model))
    except UserError as error:
        assert str(error).startswith(f"--task {task} needs a model that {made.model_does}, but --arch names one that ")
        return False
    return True


@pytest.mark.parametrize(
    "task", sorted(name for name, kind in tasks.TASK_REGISTRY.items() if issubclass(kind, TrainingTask))
)
def test_a_task_takes_models_that_do_what_it_needs(task: str) -> None:
    alone = {"extractive_summarization": "pyramidion_extractor", "character_language_modeling": "pyramidion_lm"}
    models = ["pyramidion", "pyramidion_extractor", "pyramidion_lm", "transformer"]
    assert [model for model in models if takes(task, model)] == [alone.get(task, "pyramidion"), "transformer"]


def test_patience_needs_validations(command: list[object]) -> None:
    with pytest.raises(UserError) as error:
        begin(*command, "--stopping-patience", 2, "--disable-validation")
    assert str(error.value) == "--stopping-patience counts validations, but --disable-validation is given."
    begin(*command, "--stopping-patience", 2)
    begin(*command, "--disable-validation")


def test_validation_reads_other_documents_than_training(command: list[object]) -> None:
    with pytest.raises(
        UserError, match="--valid-subset must name other splits than --train-subset train, but is valid,tr"
    ):
        begin(*command, "--valid-subset", "valid,train")
    begin(*command, "--valid-subset", "valid,train", "--disable-validation")


def test_fairseqs_own_patience_is_warned_of(command: list[object], caplog: pytest.LogCaptureFixture) -> None:
    begin(*command)
    assert "--patience" not in caplog.text
    begin(*command, "--patience", 3)
    assert "--patience 3 counts validations in mid-epoch, too" in caplog.text


def test_a_start_that_is_ignored_is_warned_of(
    command: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # What the checkpoint holds is read later.
    monkeypatch.setattr(TrainingRun, "begin", lambda run: None)
    start = tmp_path / "start.pt"
    begin(*command, "--finetune-from-model", start)
    assert "is ignored" not in caplog.text
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / "checkpoint_last.pt").touch()
    begin(*command, "--finetune-from-model", start)
    assert f"--finetune-from-model {start} is ignored: {tmp_path / 'run'} holds checkpoint_last.pt" in caplog.text
