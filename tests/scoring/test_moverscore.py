import math
import sys
from collections.abc import Sequence
from pathlib import Path
from string import punctuation

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import linprog
from small_encoders import TEXTS, ids_and_vectors, save_bert, transformers

from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metrics import MoverScore


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert"), length=24)


def metric(folder: Path, stop_words: Path | None = None) -> MoverScore:
    words = stop_words and str(stop_words)
    made = METRICS.build("moverscore", {}, embedding_model=str(folder), embedding_layer=2, stop_words=words)
    assert isinstance(made, MoverScore)
    return made


def scored(folder: Path, examples: Sequence[Example], stop_words: Path | None = None) -> np.ndarray:
    made = metric(folder, stop_words)
    made.fit(examples)
    return made.score(examples)


def by_loops(folder: Path, summaries: list[str], references: list[str], n: int, dropped: Sequence[str]) -> list[float]:
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
    found = scored(bert, examples, tmp_path / "words")[:, n - 1]
    expected = by_loops(bert, summaries, references, n, ["the", "by", "f"])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_equal_texts_score_100_and_marks_alone_nothing(bert: Path) -> None:
    # The summaries are the references, so both sides have the same idf.
    np.testing.assert_allclose(scored(bert, [Example(text, (text,)) for text in TEXTS]), 100, atol=1e-4)
    np.testing.assert_array_equal(scored(bert, [Example("?!", (TEXTS[0],)), Example("fox", ("a",))])[0], 0)


def test_a_corpus_of_one_document_has_no_rare_words_and_a_remark_says_so(bert: Path) -> None:
    made, example = metric(bert), Example(TEXTS[0], (TEXTS[1],))
    made.fit([example])
    assert 0 < made.score([example])[0, 0] < 100
    (remark,) = made.remarks()
    assert remark.startswith("moverscore: 2 times a text had no word that is rarer than others")


def test_the_signature_tells_lists_of_stop_words_apart(bert: Path, tmp_path: Path) -> None:
    found = set()
    for number, words in enumerate(("a the", "The\nA", "a of")):
        (tmp_path / str(number)).write_text(words)
        found.add(metric(bert, tmp_path / str(number)).signature())
    assert len(found) == 2


def test_a_missing_file_or_library_is_named(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("`stop_words`"):
        metric(bert, tmp_path / "words")
    monkeypatch.setitem(sys.modules, "ot", None)
    with refused("'POT<"):
        metric(bert)
