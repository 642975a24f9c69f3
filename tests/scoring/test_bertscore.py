import math
from pathlib import Path

import numpy as np
import pytest
from small_encoders import TEXTS, ids_and_vectors, save_bert, save_roberta, transformers
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metrics import BertScore


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert"), length=24)


def metric(folder: Path, layer: int | None = 2, *, idf: bool = False) -> BertScore:
    made = METRICS.build("bertscore", {}, embedding_model=str(folder), embedding_layer=layer, bertscore_idf=idf)
    assert isinstance(made, BertScore)
    return made


def scored(folder: Path, *examples: Example, layer: int | None = 2, idf: bool = False) -> np.ndarray:
    made = metric(folder, layer, idf=idf)
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
    found = scored(bert, Example(TEXTS[0], (TEXTS[1],)), Example(TEXTS[2], (TEXTS[0],)))
    np.testing.assert_allclose(found[0], by_loops(bert, TEXTS[0], TEXTS[1], None), atol=1e-4)
    np.testing.assert_allclose(found[1], by_loops(bert, TEXTS[2], TEXTS[0], None), atol=1e-4)


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


def test_of_several_references_the_best_counts_by_each_figure(bert: Path) -> None:
    alone = [scored(bert, Example(TEXTS[0], (reference,)))[0] for reference in TEXTS[1:]]
    both = scored(bert, Example(TEXTS[0], tuple(TEXTS[1:])))[0]
    np.testing.assert_allclose(both, np.max(alone, axis=0), atol=1e-4)


def test_a_text_scores_100_against_itself(bert: Path) -> None:
    np.testing.assert_allclose(scored(bert, Example(TEXTS[0], (TEXTS[0],))), 100, atol=1e-4)


@for_each("example", [Example("", (TEXTS[0],)), Example(" \n\u200b", (TEXTS[0],)), Example("a", ("",))])
def test_an_empty_text_scores_nothing(bert: Path, example: Example) -> None:
    np.testing.assert_array_equal(scored(bert, example), 0)


def test_line_breaks_make_no_difference(bert: Path) -> None:
    one, two = scored(bert, Example("a fox.\njumps", (TEXTS[0],)), Example("a fox. jumps", (TEXTS[0],)))
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_other_documents_of_a_batch_make_no_difference(bert: Path) -> None:
    alone = scored(bert, Example(TEXTS[0], (TEXTS[1],)))[0]
    among = scored(bert, Example("fox", ("a",)), Example(TEXTS[0], (TEXTS[1],)), Example(TEXTS[1] * 3, (TEXTS[2],)))
    np.testing.assert_allclose(among[1], alone, atol=1e-4)


def test_truncated_texts_are_counted_anew_for_each_system(bert: Path) -> None:
    long = " ".join(TEXTS)
    examples = [Example(long, (TEXTS[0], long)), Example(TEXTS[0], (TEXTS[0],))]
    made = metric(bert)
    for _ in range(2):
        made.fit(examples)
        made.score(examples)
        assert made.remarks() == [
            "bertscore: 1 of 2 summaries and 1 of 3 references are longer than the model's 24 tokens and were "
            "truncated (50.0% and 33.3%)."
        ]


def test_where_all_weights_are_0_tokens_weigh_the_same_and_a_remark_says_so(bert: Path) -> None:
    example = Example(TEXTS[0], (TEXTS[0],))
    made = metric(bert, idf=True)
    made.fit([example])
    np.testing.assert_allclose(made.score([example]), 100, atol=1e-4)
    assert made.remarks() == [
        "bertscore: 2 times a text had no word that is rarer than others, so all of its words weighed the same."
    ]


def test_the_signature_names_model_layer_length_and_weights(bert: Path) -> None:
    signature = metric(bert, idf=True).signature()
    name, *rest = signature.split(" | ")[1:]
    assert name.startswith(f"{bert.name} sha256:")
    assert rest[:2] == ["layer 2", "at most 24 tokens"]
    assert rest[-3:] == ["idf of references", "best of references", "not rescaled"]


def test_the_last_layer_is_taken_for_want_of_advice_and_a_remark_says_so(bert: Path) -> None:
    made = metric(bert, None)
    assert made.embedder.layer == 3
    assert made.remarks() == ["bertscore: no layer of this model is known to be best, so its last (3) is used."]


def test_the_recommended_layer_of_a_well_known_model_is_taken(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "deberta-v3-small", num_hidden_layers=5)
    made = metric(folder, None)
    assert made.embedder.layer == 4
    assert made.remarks() == []


def test_a_layer_that_the_model_lacks_is_refused(bert: Path) -> None:
    with pytest.raises(UserError) as refused:
        metric(bert, 4)
    assert str(refused.value) == f"`embedding_layer` must be from 1 to 3, the layers of {bert}, but is 4."


def test_the_first_word_of_roberta_has_its_space(tmp_path: Path) -> None:
    folder = save_roberta(tmp_path / "roberta")
    tokens = metric(folder).embedder.tokens(["models pool", "pool"])
    assert tokens[0].ids[-2] == tokens[1].ids[1]
