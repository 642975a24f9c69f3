import math
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from small_encoders import TEXTS, ids_and_vectors, save_bert, save_roberta, transformers

from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metrics import BertScore


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert"), length=24)


def metric(folder: Path, layer: int | None = 2, *, idf: bool = False) -> BertScore:
    made = METRICS.build("bertscore", {}, embedding_model=str(folder), embedding_layer=layer, bertscore_idf=idf)
    assert isinstance(made, BertScore)
    return made


def scored(folder: Path, *examples: Example, idf: bool = False) -> np.ndarray:
    made = metric(folder, idf=idf)
    made.fit(examples)
    return made.score(examples)


def by_loops(folder: Path, summary: str, reference: str, idf: dict[int, float] | None, layer: int = 2) -> list[float]:
    """BERTScore as section 3 of the paper defines it, a token at a time."""

    def mean_of_best(of: str, among: str) -> float:
        own, others = ids_and_vectors(folder, of, layer), ids_and_vectors(folder, among, layer)
        total = weights = 0.0
        for number, (piece, vector) in enumerate(zip(*own, strict=True)):
            inside = 0 < number < len(own[0]) - 1
            weight = (1.0 if idf is None else idf[piece]) * inside
            best = max(float(vector @ other / (vector.norm() * other.norm())) for other in others[1])
            total += weight * best
            weights += weight
        return total / weights

    precision, recall = mean_of_best(summary, reference), mean_of_best(reference, summary)
    return [100 * precision, 100 * recall, 100 * 2 * precision * recall / (precision + recall)]


def test_it_equals_loops_over_tokens(bert: Path) -> None:
    found = scored(bert, Example(TEXTS[0], (TEXTS[1],)), Example(TEXTS[2], (TEXTS[0],)), Example("a", ("",)))
    np.testing.assert_allclose(found[0], by_loops(bert, TEXTS[0], TEXTS[1], None), atol=1e-4)
    np.testing.assert_allclose(found[1], by_loops(bert, TEXTS[2], TEXTS[0], None), atol=1e-4)
    np.testing.assert_array_equal(found[2], 0)
    np.testing.assert_allclose(scored(bert, Example(TEXTS[0], (TEXTS[0],))), 100, atol=1e-4)


def test_idf_counts_in_how_many_references_a_piece_is(bert: Path) -> None:
    references = [TEXTS[1], TEXTS[2], "The fox."]
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    holders = [set(tokenizer.encode(reference)) for reference in references]
    idf = {
        piece: math.log((3 + 1) / (sum(piece in holder for holder in holders) + 1)) for piece in range(len(tokenizer))
    }
    examples = [Example(TEXTS[0], (references[0], references[1])), Example(TEXTS[1], (references[2],))]
    found = scored(bert, *examples, idf=True)
    np.testing.assert_allclose(found[1], by_loops(bert, TEXTS[1], references[2], idf), atol=1e-4)
    assert "idf of references" in metric(bert, idf=True).signature()


def test_where_all_weights_are_0_tokens_weigh_the_same_and_a_remark_says_so(bert: Path) -> None:
    example = Example(TEXTS[0], (TEXTS[0],))
    made = metric(bert, idf=True)
    made.fit([example])
    np.testing.assert_allclose(made.score([example]), 100, atol=1e-4)
    (remark,) = made.remarks()
    assert remark.startswith("bertscore: 2 times a text had no word that is rarer than others")


def test_a_well_known_model_has_its_best_layer_and_another_its_last(bert: Path, tmp_path: Path) -> None:
    made = metric(bert, None)
    assert made.embedder.layer == 3
    assert made.remarks() == ["bertscore: no layer of this model is known to be best, so its last (3) is used."]
    made = metric(save_bert(tmp_path / "deberta-v3-small", num_hidden_layers=5), None)
    assert (made.embedder.layer, made.remarks()) == (4, [])
    with refused("`embedding_layer` must be from 1 to 3"):
        metric(bert, 4)


def test_the_first_word_of_roberta_has_its_space(tmp_path: Path) -> None:
    folder = save_roberta(tmp_path / "roberta")
    tokens = metric(folder).embedder.tokens(["models pool", "pool"])
    assert tokens[0].ids[-2] == tokens[1].ids[1]
