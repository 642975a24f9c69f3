"""How long an extractor is trained."""

import pytest
from tables import for_each

from pyramidions.runs.measure.extractor_recipe import extractor_recipe, extractor_vocab_size
from pyramidions.runs.measure.recipe import CorpusSize

# Tokens of SumPubMed's documents.
SOURCE, TARGET = {"mean": 5802.51, "p95": 10198.05}, {"mean": 380.0, "min": 100, "max": 900}


def value(flags: tuple[str, ...], flag: str) -> str:
    return flags[flags.index(flag) + 1]


@for_each(("documents", "epochs"), [(200, 10), (1000, 10), (12_000, 1.25), (100_000, 1)])
def test_few_documents_are_read_more_often(documents: int, epochs: float) -> None:
    found = extractor_recipe(CorpusSize(documents, 16_000, SOURCE, TARGET), gpus=0)
    assert found.updates == pytest.approx(epochs * found.epoch_updates, rel=1e-3)


def test_12000_papers_take_half_an_hour_on_a_core() -> None:
    assert extractor_recipe(CorpusSize(12_000, 16_000, SOURCE, TARGET), gpus=0).hours < 0.5


def test_the_learning_rate_is_0_at_the_last_update() -> None:
    found = extractor_recipe(CorpusSize(200, 4000, SOURCE, TARGET), gpus=0)
    assert value(found.flags, "--max-update") == value(found.flags, "--total-num-update") == str(found.updates)
    assert int(value(found.flags, "--warmup-updates")) < found.updates


def test_fewer_hours_have_fewer_updates() -> None:
    corpus = CorpusSize(12_000, 16_000, SOURCE, TARGET)
    whole, short = extractor_recipe(corpus, 0), extractor_recipe(corpus, 0, hours=0.1)
    assert short.updates < whole.updates and short.hours < 0.1
    assert extractor_recipe(corpus, 0, hours=100).updates == whole.updates
    assert extractor_recipe(corpus, 0, hours=1e-9).updates == 1


def test_a_checkpoint_is_saved_within_long_epochs_only() -> None:
    short, long = (extractor_recipe(CorpusSize(n, 16_000, SOURCE, TARGET), 0) for n in (200, 12_000))
    assert "--save-interval-updates" not in short.flags
    assert value(long.flags, "--save-interval-updates") == str(long.updates // 10)


def test_a_short_corpus_is_not_read_to_the_longest_length() -> None:
    found = extractor_recipe(CorpusSize(200, 4000, {"mean": 300.0, "p95": 700.0}, TARGET), gpus=0)
    assert value(found.flags, "--max-source-positions") == "1024"


def test_the_vocabulary_grows_with_the_corpus() -> None:
    assert extractor_vocab_size(200) < extractor_vocab_size(12_000)
