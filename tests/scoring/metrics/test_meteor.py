import random

import pytest
from nltk.stem.porter import PorterStemmer
from nltk.translate.meteor_score import meteor_score
from refusals import refused

from pyramidions.scoring import Example
from pyramidions.scoring.metrics.meteor import Meteor


def meteor(prediction, *references, **options):
    return Meteor(**options).score([Example(prediction, references)])[0, 0]


def test_stems_match_where_words_do_not():
    assert meteor("cats jumped", "cat jumps") == pytest.approx(100 * (1 - 0.5 * (1 / 2) ** 3))
    assert meteor("cats jumped", "cat jumps", stemmer="none") == 0


def naive(prediction, reference):
    """Match words from the last one on: as they stand, then by stem; count chunks; combine."""
    stem = PorterStemmer().stem
    left, right, pairs = dict(enumerate(prediction)), dict(enumerate(reference)), []
    for same in (lambda a, b: a == b, lambda a, b: stem(a) == stem(b)):
        for i in sorted(left, reverse=True):
            for j in sorted(right, reverse=True):
                if same(left[i], right[j]):
                    pairs.append((i, j))
                    del left[i], right[j]
                    break
    if not pairs:
        return 0.0
    pairs.sort()
    chunks = 1 + sum(pairs[k + 1] != (i + 1, j + 1) for k, (i, j) in enumerate(pairs[:-1]))
    precision, recall = len(pairs) / len(prediction), len(pairs) / len(reference)
    penalty = 0.5 * (chunks / len(pairs)) ** 3
    return 100 * 10 * precision * recall / (recall + 9 * precision) * (1 - penalty)


def test_it_equals_nltk_and_double_loops():
    class Empty:
        def synsets(self, word):
            return []

    draw = random.Random(1)
    for _ in range(200):
        prediction, reference = (
            draw.choices("cat cats jump jumped on the a dog dogs naps".split(), k=draw.randint(1, 30)) for _ in "12"
        )
        found = meteor(" ".join(prediction), " ".join(reference))
        assert found == pytest.approx(100 * meteor_score([reference], prediction, wordnet=Empty()), abs=1e-9)
        assert found == pytest.approx(naive(prediction, reference), abs=1e-9)


@pytest.fixture
def wordnet(tmp_path):
    """A WordNet of one synset: car and auto."""
    licence = "  1 WordNet 3.0 Copyright 2006\n"
    for kind in ("noun", "verb", "adj", "adv"):
        for part in ("data", "index"):
            (tmp_path / f"{part}.{kind}").write_text(licence if part == "data" else "")
        (tmp_path / f"{kind}.exc").write_text("")
    synset = f"{len(licence):08d} 06 n 02 car 0 auto 0 000 | a motor vehicle\n"
    (tmp_path / "data.noun").write_text(licence + synset)
    (tmp_path / "index.noun").write_text("".join(f"{word} n 1 0 1 0 {len(licence):08d}\n" for word in ("auto", "car")))
    (tmp_path / "lexnames").write_text("".join(f"{n:02d}\tnoun.{n}\t1\n" for n in range(7)))
    return tmp_path


def test_synonyms_match_with_wordnet(wordnet):
    assert meteor("the auto", "the car") < meteor("the auto", "the car", wordnet=str(wordnet))
    assert meteor("the auto", "the car", wordnet=str(wordnet)) == meteor("the car", "the car")


def test_the_signature_says_whether_synonyms_match(wordnet):
    assert "exact and stem, no WordNet" in Meteor().signature()
    assert "| exact, no WordNet |" in Meteor(language="zh").signature()
    assert "exact, stem and WordNet" in Meteor(wordnet=str(wordnet)).signature()


def test_bad_options_are_one_sentence(tmp_path, wordnet):
    with refused("has no data.noun"):
        Meteor(wordnet=str(tmp_path / "nowhere"))
    with refused("`language` is de"):
        Meteor(language="de", wordnet=str(wordnet))
    (wordnet / "lexnames").write_text("damaged")
    with refused("`wordnet`"):
        Meteor(wordnet=str(wordnet))
