import re

import pytest

from pyramidions.base.errors import UserError
from pyramidions.data.readers import Document
from pyramidions.data.vocabulary import Settings, sample, train_tokenizer, training_sentences

SENTENCES = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs"] * 5


def test_a_sample_is_drawn_with_a_seed_and_bounded():
    items = [str(i) for i in range(1000)]
    assert len(sample(items, 10, seed=1)) == 10
    assert sample(items, 10, seed=1) == sample(iter(items), 10, seed=1)
    assert sample(items, 10, seed=1) != sample(items, 10, seed=2)
    assert sample(items, 2000, seed=1) == items


def test_every_item_has_about_the_same_chance():
    counts = [0] * 10
    for seed in range(2000):
        for item in sample((str(i) for i in range(10)), 3, seed):
            counts[int(item)] += 1
    assert all(520 < count < 680 for count in counts)


def test_a_text_without_full_stop_is_cut_and_not_left_out():
    (source, cut, target) = training_sentences([Document("1", "a" * 5000, "b")])
    assert (len(source), len(cut), target) == (4096, 904, "b")


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_largest_possible_vocabulary_is_named_and_possible(model_type):
    with pytest.raises(UserError) as caught:
        train_tokenizer(SENTENCES, Settings(32768, model_type=model_type))
    largest = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert train_tokenizer(SENTENCES, Settings(largest, model_type=model_type)).vocab_size == largest


@pytest.mark.parametrize(
    "settings", [{"vocab_size": 10}, {"vocab_size": 4}, {"model_type": "word"}, {"character_coverage": 1.5}]
)
def test_a_wrong_setting_is_refused(settings):
    with pytest.raises(UserError):
        train_tokenizer(SENTENCES, Settings(**{"vocab_size": 36, **settings}))


def test_the_model_type_decides():
    unigram, bpe = (train_tokenizer(SENTENCES, Settings(36, model_type=kind)) for kind in ("unigram", "bpe"))
    assert unigram.pieces() != bpe.pieces()


def test_the_character_coverage_decides():
    rare = [*SENTENCES * 20, "ξ"]
    assert "ξ" in "".join(train_tokenizer(rare, Settings(34, character_coverage=1.0)).pieces())
    assert "ξ" not in "".join(train_tokenizer(rare, Settings(34, character_coverage=0.98)).pieces())
