"""How long an extractor is trained."""

import math

import pytest

from pyramidions.runs.kinds import KINDS, Machine, Schedule
from pyramidions.runs.recipe import CorpusSize

# Tokens of SumPubMed's documents.
SOURCE, TARGET = {"mean": 5802.51, "p95": 10198.05}, {"mean": 380.0, "p5": 100, "max": 900}


EXTRACTOR = KINDS["extractor"]


def scheduled(documents: int, hours: float | None = None, source: dict[str, float] = SOURCE) -> Schedule:
    return EXTRACTOR.schedule(CorpusSize(documents, 16_000, source, TARGET), Machine(0, 16e9), hours)


def value(flags: tuple[str, ...], flag: str) -> str:
    return flags[flags.index(flag) + 1]


def test_few_documents_are_read_more_often() -> None:
    for documents, epochs in ((200, 10), (12_000, 1.25), (100_000, 1)):
        # Batches of 16,384 tokens are not filled to the last one.
        epoch_updates = math.ceil(1.1 * documents * SOURCE["mean"] / 16_384)
        assert scheduled(documents).updates == pytest.approx(epochs * epoch_updates, rel=1e-3)
    assert EXTRACTOR.vocab_size(200, 0) < EXTRACTOR.vocab_size(12_000, 0)


def test_the_learning_rate_is_0_at_the_last_update() -> None:
    found = scheduled(200)
    assert value(found.flags, "--lr-scheduler") == "linear_decay"
    assert value(found.flags, "--max-update") == str(found.updates)
    assert int(value(found.flags, "--warmup-updates")) < found.updates


def test_fewer_hours_have_fewer_updates() -> None:
    whole, short = scheduled(12_000), scheduled(12_000, hours=0.1)
    # 12,000 papers take half an hour on a core.
    assert short.updates < whole.updates and short.hours < 0.1 < whole.hours < 0.5
    assert scheduled(12_000, hours=100).updates == whole.updates
    assert scheduled(12_000, hours=1e-9).updates == 1


def test_a_checkpoint_is_saved_within_long_epochs_only() -> None:
    short, long = (scheduled(documents) for documents in (200, 12_000))
    assert "--save-interval-updates" not in short.flags
    assert value(long.flags, "--save-interval-updates") == str(long.updates // 10)


def test_a_short_corpus_is_not_read_to_the_longest_length() -> None:
    found = scheduled(200, source={"mean": 300.0, "p95": 700.0})
    assert value(found.flags, "--max-source-positions") == "1024"
