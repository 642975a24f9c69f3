import math
import sys
from collections.abc import Sequence
from pathlib import Path
from string import punctuation

import numpy as np
import pytest
from scipy.optimize import linprog
from small_encoders import TEXTS, ids_and_vectors, save_bert, transformers
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metrics import MoverScore


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert"), length=24)


def scored(folder: Path, examples: Sequence[Example], stop_words: str | None = None) -> np.ndarray:
    made = METRICS.build(
        "moverscore", {}, embedding_model=str(folder), embedding_layer=2, stop_words=stop_words, device="cpu"
    )
    assert isinstance(made, MoverScore)
    made.fit(examples)
    return made.score(examples)


def by_loops(
    folder: Path, summaries: list[str], references: list[str], n: int, dropped: Sequence[str] = ()
) -> list[float]:
    """MoverScore of each pair, a token at a time, with a linear program for the transport."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def ngrams(text: str, texts: list[str]) -> list[tuple[np.ndarray, float]]:
        ids, vectors = ids_and_vectors(folder, text, 2)
        kept = []
        for piece, vector in zip(ids, vectors, strict=True):
            word = tokenizer.convert_ids_to_tokens(piece)
            if "##" in word or word in punctuation or word in dropped:
                continue
            holders = sum(piece in tokenizer.encode(other) for other in texts)
            kept.append(((vector / vector.norm()).numpy(), math.log((len(texts) + 1) / (holders + 1))))
        found = []
        for start in range(len(kept) - n + 1):
            window = kept[start : start + n]
            weight = sum(w for _, w in window)
            if weight > 0:
                mean = sum(w * vector for vector, w in window) / weight
                found.append((mean / np.linalg.norm(mean), weight))
        total = sum(w for _, w in found)
        return [(vector, w / total) for vector, w in found]

    scores = []
    for summary, reference in zip(summaries, references, strict=True):
        left, right = ngrams(summary, summaries), ngrams(reference, references)
        cost = [[np.linalg.norm(x - y) for y, _ in right] for x, _ in left]
        rows = [[float(i == row) for i in range(len(left)) for _ in right] for row in range(len(left))]
        columns = [[float(j == column) for _ in left for j in range(len(right))] for column in range(len(right))]
        sums = [w for _, w in left] + [w for _, w in right]
        found = linprog(np.ravel(cost), A_eq=rows + columns, b_eq=sums, method="highs")
        scores.append(100 * (1 - found.fun))
    return scores


@pytest.mark.parametrize("n", [1, 2])
def test_it_equals_loops_over_ngrams(bert: Path, tmp_path: Path, n: int) -> None:
    summaries, references = [TEXTS[0], TEXTS[2], "models pool"], [TEXTS[1], TEXTS[0], "The fox jumps."]
    (tmp_path / "words").write_text("The\nby f")
    examples = [Example(summary, (reference,)) for summary, reference in zip(summaries, references, strict=True)]
    found = scored(bert, examples, str(tmp_path / "words"))[:, n - 1]
    expected = by_loops(bert, summaries, references, n, ["the", "by", "f"])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_of_several_references_the_mean_counts(bert: Path) -> None:
    made = METRICS.build("moverscore", {}, embedding_model=str(bert), embedding_layer=2)
    both = Example(TEXTS[0], (TEXTS[1], TEXTS[2]))
    made.fit([both, Example(TEXTS[1], (TEXTS[0],))])
    alone = made.score([Example(TEXTS[0], (reference,)) for reference in both.references])
    np.testing.assert_allclose(made.score([both])[0], alone.mean(axis=0), atol=1e-4)


def test_one_transport_by_hand(bert: Path) -> None:
    """Weights of 1/4 and 3/4 go to one of 1/2 each at distances of 0 and the root of 2."""
    made = METRICS.build("moverscore", {}, embedding_model=str(bert), embedding_layer=2)
    assert isinstance(made, MoverScore)
    axes = np.eye(2)
    distance = made._distance((axes, np.array([0.25, 0.75])), (axes, np.array([0.5, 0.5])))
    assert distance == pytest.approx(0.25 * math.sqrt(2), abs=1e-7)


def test_equal_texts_score_100(bert: Path) -> None:
    # The summaries are the references, so both sides have the same idf.
    np.testing.assert_allclose(scored(bert, [Example(text, (text,)) for text in TEXTS]), 100, atol=1e-4)


@for_each("summary", ["", " \n", "?!", "..."])
def test_a_summary_without_words_scores_nothing(bert: Path, summary: str) -> None:
    np.testing.assert_array_equal(scored(bert, [Example(summary, (TEXTS[0],)), Example("fox", ("a",))])[0], 0)


def test_a_corpus_of_one_document_has_no_rare_words_and_a_remark_says_so(bert: Path) -> None:
    made = METRICS.build("moverscore", {}, embedding_model=str(bert), embedding_layer=2)
    example = Example(TEXTS[0], (TEXTS[1],))
    made.fit([example])
    assert 0 < made.score([example])[0, 0] < 100
    assert made.remarks() == [
        "moverscore: 2 times a text had no word that is rarer than others, so all of its words weighed the same."
    ]


def test_the_signature_tells_lists_of_stop_words_apart(bert: Path, tmp_path: Path) -> None:
    found = set()
    for number, words in enumerate(("a the", "The\nA", "a of", "")):
        file = tmp_path / str(number)
        file.write_text(words)
        found.add(METRICS.build("moverscore", {}, embedding_model=str(bert), stop_words=str(file)).signature())
    assert len(found) == 3
    assert any(" | idf | no stop words | " in signature for signature in found)


def test_stop_words_that_cannot_be_read_are_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        scored(bert, [], str(tmp_path / "words"))
    assert str(refused.value) == (
        f"`stop_words` must be a file of words, but {tmp_path / 'words'} cannot be read: No such file or directory."
    )


def test_without_the_library_of_transport_the_error_says_how_to_get_it(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(UserError) as refused:
        scored(bert, [])
    assert str(refused.value).startswith("The metric moverscore needs the library ot, which is not installed: `pip")
    assert "'POT<" in str(refused.value)
