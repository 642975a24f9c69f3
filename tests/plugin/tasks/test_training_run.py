"""How a run begins and ends: validations that count, settings that contradict each other, doubtful schedules."""

import logging
from math import nan
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq import tasks
from fairseq_commands import train_command, train_extractor_command
from omegaconf import OmegaConf
from refusals import refused
from trainings import config_of

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.plugin.tasks.schedule import Milestones, doubts, schedule_of
from pyramidions.plugin.tasks.training_run import StoppingRule, TrainingRun
from pyramidions.plugin.tasks.training_task import TrainingTask


class Epoch:
    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end

    def end_of_epoch(self) -> bool:
        return self.at_end


@pytest.fixture
def training(tmp_path: Path) -> TrainingRun:
    checkpoint = {"best_checkpoint_metric": "rouge2", "maximize_best_checkpoint_metric": True}
    folder = {"save_dir": str(tmp_path), "no_last_checkpoints": False}
    run = {
        "checkpoint": {**checkpoint, **folder},
        "dataset": {"disable_validation": False},
        "optimization": {"stop_min_lr": -1.0},
    }
    return TrainingRun(OmegaConf.create(run), patience=1)


def test_of_several_subsets_the_first_counts(training: TrainingRun) -> None:
    training.epoch = Epoch(at_end=True)
    for update, scores in ((6, (5, 1)), (12, (6, 1)), (18, (7, 1))):
        for score in scores:
            training.validated({"rouge2": score, "num_updates": update})
    assert training.stopping.state_dict() == {"best": 7.0, "without_progress": 0}


def test_validations_in_mid_epoch_do_not_count(training: TrainingRun) -> None:
    training.epoch = Epoch(at_end=False)
    for update, score in ((4, 3), (8, 2), (12, 1)):
        training.validated({"rouge2": score, "num_updates": update})
    assert training.stopping.state_dict() == {"best": None, "without_progress": 0}
    assert training.run.optimization.stop_min_lr == -1


class Criterion:
    conditional_metrics = ("sharpness_",)
    training_metrics = ("sampled_reward",)


@pytest.mark.parametrize("metric", ["rouge2", "sampled_reward"], ids=["unknown", "of training alone"])
def test_another_best_metric_is_refused_at_the_first_update(training: TrainingRun, metric: str) -> None:
    training.run.checkpoint.best_checkpoint_metric = metric
    with refused(f"--best-checkpoint-metric must be one of loss, ppl, rouge1, but is '{metric}'."):
        training.logged(["ppl", "loss", "rouge1", "wps", "_loss_sum", "sampled_reward"], Criterion())
    training.run.checkpoint.best_checkpoint_metric = "rouge1"
    training.logged(["loss", "rouge1"], Criterion())
    # Later updates may log less.
    training.logged(["loss"], Criterion())


@pytest.mark.parametrize(("metric", "criterion"), [("sharpness_2", Criterion()), ("rouge2", object())])
def test_a_metric_that_the_first_update_may_lack_is_checked_at_validation(
    training: TrainingRun, metric: str, criterion: object
) -> None:
    training.run.checkpoint.best_checkpoint_metric = metric
    training.epoch = Epoch(at_end=True)
    training.logged(["loss"], criterion)
    training.validated({"loss": 1.0, metric: 2.0, "num_updates": 6})
    with refused(f"one of loss, but is '{metric}'"):
        training.validated({"loss": 1.0, "wps": 3.0, "num_updates": 12})


def rule(patience: int, maximize: bool = True) -> StoppingRule:
    checkpoint = {"best_checkpoint_metric": "rouge2", "maximize_best_checkpoint_metric": maximize}
    run = OmegaConf.create({"checkpoint": checkpoint, "optimization": {"stop_min_lr": -1.0}})
    return StoppingRule(patience, run)


def validated(stopping: StoppingRule, *scores: float) -> bool:
    """Whether the run has ended after these scores."""
    for score in scores:
        stopping.validated(score)
    return bool(stopping.run.optimization.stop_min_lr > 0)


@pytest.mark.parametrize(
    ("maximize", "scores", "ended"),
    [
        *[(True, scores, False) for scores in [(3, 2), (3, 2, 4, 3), (nan, 1, 2, 3)]],
        *[(True, scores, True) for scores in [(3, 2, 1), (3, 3, 3), (nan, nan, nan), (nan, 2, 1, nan)]],
        (False, (4, 3, 2, 1), False),
        (False, (1, 2, 3), True),
    ],
)
def test_a_run_ends_after_two_validations_without_progress_wherever_it_was_restarted(
    maximize: bool, scores: tuple[float, ...], ended: bool
) -> None:
    assert not validated(rule(0, maximize), *scores)
    for restart in range(len(scores) + 1):
        before, after = rule(2, maximize), rule(2, maximize)
        validated(before, *scores[:restart])
        after.load_state_dict(before.state_dict())
        # One that had ended ends at once.
        assert validated(after) is validated(before) and validated(after, *scores[restart:]) is ended


# Settings of a run that contradict each other, in every task.


def begin(*words: object) -> None:
    """Make the task of a command, and begin its run."""
    task = tasks.setup_task(config_of(["fairseq-train", *words]).task)
    assert isinstance(task, TrainingTask)
    task.begin_training(from_checkpoint=False)


@pytest.fixture
def command(data: DataFolder, tmp_path: Path) -> list[object]:
    return train_command(data, tmp_path / "run")[1:]


def takes(task: str, model: str) -> bool:
    made = object.__new__(tasks.TASK_REGISTRY[task])
    made.cfg = SimpleNamespace(_name=task)
    try:
        made.check_kind(SimpleNamespace(_name=model))
    except UserError:
        return False
    return True


def test_a_task_takes_models_that_do_what_it_needs() -> None:
    alone = {"extractive_summarization": "pyramidion_extractor", "character_language_modeling": "pyramidion_lm"}
    models = ["pyramidion", "pyramidion_extractor", "pyramidion_lm", "transformer"]
    for task in (name for name, kind in tasks.TASK_REGISTRY.items() if issubclass(kind, TrainingTask)):
        assert [model for model in models if takes(task, model)] == [alone.get(task, "pyramidion"), "transformer"], task


@pytest.mark.parametrize("flag", ["--fp16", "--memory-efficient-fp16"])
def test_float16_needs_a_gpu(flag: str, command: list[object]) -> None:
    with refused("--fp16 needs a GPU: on a CPU, --bf16 computes in 16 bits, and --amp in float32."):
        begin(*command, flag)


def test_patience_needs_validations(command: list[object], tmp_path: Path) -> None:
    toys = "--task toy_sequences --arch vanilla --optimizer adam --lr-scheduler fixed --save-dir".split()
    for words in (command, [*toys, tmp_path]):
        with refused("--stopping-patience counts validations, but --disable-validation is given."):
            begin(*words, "--stopping-patience", 2, "--disable-validation")
    begin(*command, "--stopping-patience", 2)
    begin(*command, "--disable-validation")


def test_extracts_need_their_criterion_and_model_and_rouge_its_flag(
    labelled_data: DataFolder, command: list[object], tmp_path: Path
) -> None:
    extracts = train_extractor_command(labelled_data, tmp_path / "run")[1:]
    for words, told in (
        (
            [*extracts, "--arch", "vanilla"],
            "--task extractive_summarization needs a model that rates sentences, but --arch names one that writes: use "
            "another --arch, or --task long_document_summarization.",
        ),
        ([*extracts, "--best-checkpoint-metric", "rouge2"], "--best-checkpoint-metric rouge2 needs --eval-rouge"),
        ([*command, "--best-checkpoint-metric", "rouge2"], "--best-checkpoint-metric rouge2 needs --eval-rouge"),
    ):
        run = config_of(["fairseq-train", *words])
        with refused(told):
            tasks.setup_task(run.task).build_model(run.model)
    for words, told in (
        ([*extracts, "--criterion", "pooled_cross_entropy"], "needs --criterion extractive_summarization, but"),
        ([*command, "--criterion", "boundary_cross_entropy"], "is for models of --arch hourglass_... alone"),
    ):
        run = config_of(["fairseq-train", *words])
        with refused(told):
            tasks.setup_task(run.task).build_criterion(run.criterion)


def test_a_pooling_that_never_pools_is_warned_of(command: list[object], caplog: pytest.LogCaptureFixture) -> None:
    for words, told in (
        (["--pooling-lengths", "None,32,None"], 0),
        # How many these hand on depends on what is in a document.
        (["--pooling-lengths", "64,None,None", "--pooling", "delete_gate"], 0),
        (["--pooling-lengths", "32,32,None"], 1),
        (["--pooling-lengths", "64,None,None", "--pooling", "mean"], 2),
    ):
        run = config_of(["fairseq-train", *command, "--max-source-positions", 64, *words])
        tasks.setup_task(run.task).build_model(run.model)
        assert caplog.text.count("never pools") == told, words
    assert "behind layer 2 never pools: of documents of --max-source-positions 64, at most 32 vectors" in caplog.text


def test_validation_reads_other_documents_than_training(command: list[object]) -> None:
    with refused("--valid-subset must name other splits than --train-subset train, but is valid,train."):
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


# What a run is warned of before its first update.


# The training command of 0.1.0's README on 150 documents.
SMALL_CORPUS = Milestones(
    epoch_updates=1, warmup=5000, max_update=None, validate_interval=3, patience=0, first_validation=3
)


@pytest.mark.parametrize(
    ("schedule", "doubt"),
    [
        (SMALL_CORPUS, "1 update an epoch and a warm-up of 5,000: the learning rate reaches its peak only after"),
        (SMALL_CORPUS._replace(epoch_updates=249), "the learning rate reaches its peak only after 21 epochs."),
        (SMALL_CORPUS._replace(epoch_updates=250), None),
        (SMALL_CORPUS._replace(max_update=100), "the run ends after 100 updates, before the learning rate"),
        (SMALL_CORPUS._replace(max_update=4999), "after 4,999 updates, before the learning rate reaches its peak"),
        (SMALL_CORPUS._replace(epoch_updates=250, max_update=5001), None),
        (Milestones(793, 5000, None, 1, 3, 793), "--stopping-patience 3 with --validate-interval 1 may end the run"),
        (Milestones(1000, 5000, None, 1, 5, 1000), None),
        (Milestones(19, 0, 38, 3, 0, 57), "The run ends after 38 updates, but the first validation is due after 57: "),
        (Milestones(19, 0, 57, 3, 0, 57), None),
        (Milestones(13, 0, 400, 1, 0, 13, pooling_warmup=400), "The run ends after 400 updates, within the --pooling-"),
        (Milestones(13, 0, 401, 1, 0, 13, pooling_warmup=400), None),
        # The paper's run on PubMed, and a run without a warm-up and without validations.
        (Milestones(468, 5000, None, 3, 7, 3 * 468), None),
        (Milestones(1, 0, 60, 1, 0, None), None),
    ],
)
def test_a_schedule_that_cannot_learn_is_doubted_in_a_sentence(schedule: Milestones, doubt: str | None) -> None:
    found = doubts(schedule)
    assert found == [] if doubt is None else len(found) == 1 and doubt in found[0]


def warnings(data: DataFolder, folder: Path, caplog: pytest.LogCaptureFixture, *flags: str) -> list[str]:
    """Go as far as fairseq-train does before its first update; return what was warned of."""
    run = config_of(train_command(data, folder, "--max-source-positions", "100000", *flags))
    task = tasks.setup_task(run.task)
    task.build_model(run.model)
    with caplog.at_level(logging.WARNING):
        task.load_dataset("train")
        for epoch in (1, 2):
            task.get_batch_iterator(task.dataset("train"), max_sentences=4, epoch=epoch)
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def test_a_schedule_that_cannot_learn_is_warned_of_once_before_the_first_update(
    data: DataFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # 24 documents, 4 in a batch, 4 batches an update: 2 updates an epoch.
    flags = ("--update-freq", "4", "--max-target-positions", "2000", "--warmup-updates")
    assert warnings(data, tmp_path, caplog, *flags, "5000") == [
        "2 updates an epoch and a warm-up of 5,000: the learning rate reaches its peak only after 2,500 epochs.",
        "`pyramidions train DOCUMENTS -o MODEL --kind KIND --dry-run` prints a schedule that fits.",
    ]
    caplog.clear()
    assert warnings(data, tmp_path, caplog, *flags, "20") == []


@pytest.mark.parametrize(
    ("flags", "first"),
    [
        ("--max-epoch 2 --validate-interval 3", 18),
        ("--max-epoch 2 --validate-interval 3 --save-interval-updates 4", 4),
        ("--max-update 8 --validate-interval 3", 8),
        ("--validate-interval-updates 5", 5),
        ("--validate-after-updates 7", 7),
        ("--disable-validation", None),
    ],
)
def test_the_first_validation_is_where_fairseq_has_it(
    data: DataFolder, tmp_path: Path, flags: str, first: int | None
) -> None:
    schedule = schedule_of(config_of(train_command(data, tmp_path, *flags.split())).task, batches=6)
    assert schedule is not None and schedule.first_validation == first
    assert schedule.max_update == {"--max-epoch": 12, "--max-update": 8}.get(flags.split()[0])
