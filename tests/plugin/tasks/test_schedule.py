"""What a run is warned of before its first update."""

import logging
from pathlib import Path

import pytest
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_commands import train_command
from tables import for_each

from pyramidions.data.folder import DataFolder
from pyramidions.plugin.tasks.schedule import Schedule, doubts

# The training command of 0.1.0's README on 150 documents.
SMALL_CORPUS = Schedule(
    epoch_updates=1, warmup=5000, max_update=None, validate_interval=3, patience=0, first_validation=3
)


def test_a_warmup_of_thousands_of_epochs_is_told_in_epochs() -> None:
    assert doubts(SMALL_CORPUS) == [
        "1 update an epoch and a warm-up of 5,000: the learning rate reaches its peak only after 5,000 epochs."
    ]


def test_a_run_that_ends_within_its_warmup_is_told_how_far_it_gets() -> None:
    assert doubts(SMALL_CORPUS._replace(max_update=100)) == [
        "1 update an epoch and a warm-up of 5,000: the run ends after 100 updates, before the learning rate reaches "
        "its peak; it gets to 2% of --lr."
    ]


def test_a_patience_that_may_end_the_run_within_the_warmup_is_told() -> None:
    arxiv = Schedule(793, 5000, None, 1, 3, 793)
    assert doubts(arxiv) == [
        "--stopping-patience 3 with --validate-interval 1 may end the run after 2,379 updates without progress, within "
        "the warm-up of 5,000."
    ]


def test_a_validation_that_is_due_after_the_end_is_told() -> None:
    assert doubts(Schedule(19, 50, 38, 3, 0, 57))[-1] == (
        "The run ends after 38 updates, but the first validation is due after 57: the validation set is never used, "
        "and no best checkpoint is written."
    )


@pytest.mark.parametrize("updates", [793, 468])
def test_the_papers_run_on_arxiv_and_pubmed_is_not_doubted(updates: int) -> None:
    assert doubts(Schedule(updates, 5000, None, 3, 7, 3 * updates)) == []


def test_a_run_that_ends_within_its_pooling_warmup_is_told() -> None:
    assert doubts(Schedule(13, 0, 300, 1, 0, 13, pooling_warmup=400)) == [
        "The run ends after 300 updates, within the --pooling-warmup of 400: the model never trains with the poolings "
        "that it validates and writes with."
    ]
    assert doubts(Schedule(13, 0, 401, 1, 0, 13, pooling_warmup=400)) == []


def test_no_warmup_and_no_validation_are_not_doubted() -> None:
    assert doubts(Schedule(1, 0, 60, 1, 0, None)) == []


def warnings(data: DataFolder, folder: Path, caplog: pytest.LogCaptureFixture, *flags: str) -> list[str]:
    """Go as far as fairseq-train does before its first update; return what was warned of."""
    words = [str(word) for word in train_command(data, folder, *flags)[1:]]
    parser = options.get_training_parser()
    run = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, input_args=words))
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
    flags = ("--update-freq", "4", "--warmup-updates", "5000", "--max-source-positions", "100000")
    assert warnings(data, tmp_path, caplog, *flags, "--max-target-positions", "2000") == [
        "2 updates an epoch and a warm-up of 5,000: the learning rate reaches its peak only after 2,500 epochs.",
        "`pyramidions train DOCUMENTS -o MODEL --kind KIND --dry-run` prints a schedule that fits.",
    ]


def test_a_schedule_that_fits_is_not_warned_of(
    data: DataFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ("--warmup-updates", "60", "--max-source-positions", "100000", "--max-target-positions", "2000")
    assert warnings(data, tmp_path, caplog, *flags) == []


@for_each(
    ("flags", "first"),
    [
        (("--max-epoch", "2", "--validate-interval", "3"), 18),
        (("--max-epoch", "2", "--validate-interval", "3", "--save-interval-updates", "4"), 4),
        (("--max-update", "8", "--validate-interval", "3"), 8),
        (("--validate-interval-updates", "5",), 5),
        (("--validate-after-updates", "7",), 7),
        (("--disable-validation",), None),
    ],
)  # fmt: skip
def test_the_first_validation_is_where_fairseq_has_it(
    data: DataFolder, tmp_path: Path, flags: tuple[str, ...], first: int | None
) -> None:
    from pyramidions.plugin.tasks.schedule import schedule_of

    words = [str(word) for word in train_command(data, tmp_path, *flags)[1:]]
    run = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), input_args=words))
    schedule = schedule_of(run.task, batches=6)
    assert schedule is not None and schedule.first_validation == first
