import json
import lzma
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score import tokenize
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.scoring import Example
from pyramidions.scoring.metrics.rouge import Rouge
from pyramidions.text.normalization import split_sentences

SAMPLE = Path(__file__).parents[3] / "data" / "sample"


def document_scores(prediction, *references, **options):
    (figures,) = Rouge(**options).score([Example(prediction, references)])
    return dict(zip(Rouge.figures, figures, strict=True))


WORDS = st.lists(st.sampled_from("The cats jumped . over dogs' houses? 3 naïve the cat a".split()), max_size=40)


@given(WORDS, WORDS)
@settings(max_examples=300)
def test_english_equals_rouge_score_to_the_last_digit(ours, theirs):
    prediction, reference = " ".join(ours), " ".join(theirs)
    plain = RougeScorer(list(Rouge.figures), use_stemmer=True)
    expected = plain.score("\n".join(split_sentences(reference)), "\n".join(split_sentences(prediction)))
    assert document_scores(prediction, reference) == {name: 100 * expected[name].fmeasure for name in Rouge.figures}


def test_a_paper_scores_the_same_with_each_release_of_rouge_score():
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        paper = json.loads(next(papers))
    scores = document_scores(paper["article"][:1500], paper["abstract"])
    assert scores == pytest.approx({"rouge1": 52.80528, "rouge2": 26.490066, "rougeL": 29.70297, "rougeLsum": 51.15512})


def test_english_has_the_words_that_rouge_score_makes_with_its_stemmer(monkeypatch):
    asked = []
    monkeypatch.setattr(tokenize, "tokenize", lambda text, stemmer: asked.append((text, stemmer)) or text.split())
    # Left as they are, the words differ.
    assert document_scores("Cats jumped. Dogs ran.", "cat jumps.")["rouge1"] == 0
    assert [text for text, _ in asked] == ["Cats jumped.", "Dogs ran.", "cat jumps."]
    words = ["jumping", "relational", "generously", "skies", "agreed"]
    for _, stemmer in asked:
        assert [stemmer.stem(word) for word in words] == [PorterStemmer().stem(word) for word in words]


@pytest.mark.parametrize(
    ("language", "prediction", "reference", "rouge1"),
    [
        # Two of three stems: Katz, schlaf.
        ("de", "Katzen schlafen gern", "Katze schläft", 100 * 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),
        ("ru", "кошки спят", "кошка спит", 50),
        ("zh", "我喜欢猫", "我喜欢狗", 75),
        ("hi", "बिल्ली सोती है", "बिल्ली सोती है", 100),
        ("el", "οι γάτες", "οι γάτες κοιμούνται", 80),
    ],
)
def test_other_languages_have_words_of_their_own(language, prediction, reference, rouge1):
    assert document_scores(prediction, reference, language=language)["rouge1"] == pytest.approx(rouge1)


def test_tokenization_and_stemmer_are_options() -> None:
    assert document_scores("кошки спят", "кошка спит", language="ru", tokenization="ascii")["rouge1"] == 0
    assert document_scores("cats jumped", "cat jumps")["rouge1"] == 100
    assert document_scores("cats jumped", "cat jumps", stemmer="none")["rouge1"] == 0


def test_sentences_without_spaces_are_told_apart() -> None:
    found = document_scores("猫睡觉。狗叫。", "狗叫。猫睡觉。", language="zh")
    assert (found["rougeLsum"], found["rougeL"]) == (100, 60)


def test_the_signature_says_language_tokenization_and_stemmer():
    assert Rouge("de").signature() == (
        f"ROUGE pyramidions {version('pyramidions')} | language de | tokenization words | "
        f"stemmer snowball (nltk {version('nltk')}) | F1 | sentences: sentencex 1.0.32, marks of lists masked, "
        "joined behind abbreviations | normalisation NFKC, powers as 10^6"
    )
    assert "tokenization characters | stemmer none" in Rouge("zh").signature()
