"""Models of concepts: their features, trees, coverage and files."""

import json
import lzma
from math import log
from pathlib import Path

import numpy as np
import pytest
from conftest import SAMPLE
from refusals import refused
from safetensors.numpy import load_file

from pyramidions.base.errors import UserError
from pyramidions.extract import Budget, SelectionRules
from pyramidions.extract.concepts import ConceptModel, ConceptRanker, covered, load_concepts
from pyramidions.extract.concepts.coverage import Cover, Wanted
from pyramidions.extract.concepts.features import Frequencies, concepts_of, measure, pair_keys, with_chances
from pyramidions.extract.concepts.files import ARRAYS, CARD, files_of
from pyramidions.extract.concepts.model import FEATURES
from pyramidions.extract.concepts.paper import paper_of
from pyramidions.extract.concepts.policy import FEATURE_NAMES, History, PolicyChoice
from pyramidions.extract.concepts.trees import Trees
from pyramidions.extract.concepts.words import hashes_of
from pyramidions.extract.extraction import extract
from pyramidions.extract.methods import find_method
from pyramidions.inference.batch_maps import ExtractorMap
from pyramidions.inference.extractor import Extractor
from pyramidions.text.outline import outline
from pyramidions.text.turns import read_outline

METHODS = "# Methods\n\nThe cells grew fast in water. Cells of mice grew in milk."
MEETING = """Ann: Good morning, we have two things to decide today.
Bob: First the colour, and then the price of the remote control.
Ann: The remote control is yellow, as bananas are.
Bob: It will cost twenty euros in the shops.
Ann: Then we are done, and meet again on Monday.
"""
TEXT = f"{METHODS}\n\n# Results\n\nMice in water died of cells."


def frequencies(keys: np.ndarray, seen: list[int], hits: list[int], least: int = 1) -> Frequencies:
    order = np.argsort(keys)
    counts = (np.array(numbers, dtype=np.int32)[order] for numbers in (seen, hits))
    return Frequencies(10, least, 0.2, keys[order], *counts)


NOTHING = frequencies(np.zeros(0, dtype=np.uint32), [], [])


def stump(feature: int, threshold: float, low: float, high: float, features: int) -> Trees:
    """One test: up to the threshold `low`, above it `high`."""
    nodes = np.array([feature, -1, -1], dtype=np.int16)
    return Trees(0.0, np.array([0], dtype=np.int32), nodes, np.array([threshold, low, high]), features)


def small_model() -> ConceptModel:
    """Wants what occurs in two sentences at least."""
    trees = [stump(1, log(2.5), -3.0, 1.0, features) for features in FEATURES]
    return ConceptModel((NOTHING, NOTHING), (trees[0], trees[1]))


def test_concepts_are_stemmed_content_words_and_pairs_with_one_of_them() -> None:
    paper = paper_of(outline("Cells of mice grew."))
    words, pairs = concepts_of(paper, 1), concepts_of(paper, 2)
    assert sorted(words.keys) == sorted([*hashes_of("cell"), *hashes_of("mice"), *hashes_of("grew")])
    assert len(pairs.keys) == 3
    assert sorted(words.places) == [0, 2, 3]
    # No pair crosses sentences, and each sentence counts once.
    paper = paper_of(outline(TEXT))
    words = concepts_of(paper, 1)
    (cell,) = hashes_of("cells")
    at = int(np.flatnonzero(words.keys == cell)[0])
    assert words.counts[at] == 3
    assert words.sentence[words.concept == at].tolist() == [0, 1, 2]
    assert concepts_of(paper, 2).counts.sum() == 5 + 5 + 5


def test_log_odds_are_smoothed_by_what_all_concepts_have_in_common() -> None:
    keys = np.array([3, 5], dtype=np.uint32)
    known = frequencies(keys, [3, 0], [1, 0])
    seen, hits = known.of(np.array([3, 5, 7]))
    assert (seen.tolist(), hits.tolist()) == ([3, 0, 0], [1, 0, 0])
    chance = (1 + 4 * 0.2) / (3 + 4)
    assert known.log_odds(seen, hits) == pytest.approx([log(chance / (1 - chance)), log(0.25), log(0.25)])
    # A concept of too few documents is unknown.
    assert [each.tolist() for each in frequencies(keys, [2, 1], [1, 1], least=2).of(keys)] == [[2, 0], [1, 0]]


def test_features_have_one_row_for_each_concept_and_are_finite() -> None:
    paper = paper_of(outline(TEXT))
    measured = measure(paper, (NOTHING, NOTHING))
    chances = np.linspace(0.1, 0.9, len(measured.concepts[0].keys))
    both = measured.features[0], with_chances(paper, measured, chances)
    for concepts, rows, features in zip(measured.concepts, both, FEATURES, strict=True):
        assert rows.shape == (len(concepts.keys), features)
        assert np.isfinite(rows).all()


def test_pairs_know_what_is_expected_of_their_words_and_sentences() -> None:
    paper = paper_of(outline("Mice of farms grew. Cells grew fast."))
    measured = measure(paper, (NOTHING, NOTHING))
    words, pairs = measured.concepts
    chances = dict(zip(words.keys.tolist(), (each / 10 for each in range(1, 6)), strict=True))
    mice, farm, grew, cell, fast = (
        chances[int(hashes_of(word)[0])] for word in ("mice", "farms", "grew", "cells", "fast")
    )
    rows = with_chances(paper, measured, np.array(list(chances.values())))[:, -4:]
    expected = {
        "mice of": [mice, 0, (mice + farm + grew) / 4, (mice + farm + grew) / 4],
        "cells grew": [cell, grew, (cell + grew + fast) / 3, (cell + grew + fast) / 3],
    }
    for pair, row in expected.items():
        (key,) = pair_keys(*hashes_of(pair).reshape(2, 1))
        assert rows[np.flatnonzero(pairs.keys == key)[0]] == pytest.approx(row)


def test_sentences_are_chosen_that_cover_the_most_weight() -> None:
    # Sentence 0 has concepts 0 and 1, sentence 1 has 1 and 2, sentence 2 has 0 alone.
    wanted = Wanted(np.array([0.5, 0.4, 0.3]), np.array([0, 1, 1, 2, 0]), np.array([0, 0, 1, 1, 2]))
    found = Cover(wanted, np.array([4, 4, 3]), np.ones(3), 1.0)
    found.fill(Budget(8))
    assert found.chosen == [0, 1]
    assert wanted.weights.sum() - found.left.sum() == pytest.approx(0.5 + 0.4 + 0.3)


def test_cover_takes_the_best_sentence_where_none_fits_and_none_of_bonus_zero() -> None:
    wanted = Wanted(np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 1]))

    def chosen(bonus: list[float], budget: Budget) -> list[int]:
        cover = Cover(wanted, np.array([5, 5]), np.array(bonus), 1.0)
        cover.fill(budget)
        return cover.chosen

    assert chosen([1.0, 1.0], Budget(3)) == [1]
    assert chosen([1.0, 0.0], Budget(20)) == [0]
    assert chosen([1.0, 1.0], Budget(sentences=1)) == [1]


def test_trees_predict_as_those_of_scikit_learn() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    random = np.random.default_rng(0)
    rows = random.normal(size=(1_500, 6)).astype(np.float32)
    rows[:, 5] = np.round(rows[:, 5])  # ties on thresholds
    held = rows[:, 0] * rows[:, 1] + rows[:, 5] + random.normal(size=1_500) > 0
    classifier = ensemble.HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=31, early_stopping=False)
    classifier.fit(rows, held)
    assert np.abs(Trees.of(classifier).chances(rows) - classifier.predict_proba(rows)[:, 1]).max() < 1e-6
    regressor = ensemble.HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=31, early_stopping=False)
    regressor.fit(rows, rows[:, 0] * rows[:, 1])
    assert np.abs(Trees.of(regressor).numbers(rows) - regressor.predict(rows)).max() < 1e-6
    # A row on the threshold goes left.
    chances = stump(0, 1.0, -1.0, 1.0, features=1).chances(np.array([[1.0], [1.5]]))
    assert chances == pytest.approx([1 / (1 + np.e), 1 / (1 + 1 / np.e)])


@pytest.mark.parametrize("nodes", [[0], [-1, -1], [0, -1, -1, -1], [0, 0, -1, -1], [9, -1, -1]])
def test_nodes_that_are_no_tree_are_refused(nodes: list[int]) -> None:
    with pytest.raises(ValueError):
        Trees(0.0, np.array([0], dtype=np.int32), np.array(nodes, dtype=np.int16), np.zeros(len(nodes)), 2).check()


def test_ranked_sentences_are_selected_in_the_order_of_their_choice() -> None:
    read = outline(TEXT)
    scores = ConceptRanker(small_model(), Budget(13)).rank(read)
    found = extract(read, scores, SelectionRules(Budget(13)))
    assert len(found.sentences) == 2
    assert all(sentence.score > 1 for sentence in found.sentences)


def test_each_wanted_concept_is_covered_by_the_first_sentence_that_has_it() -> None:
    first, second = covered(small_model(), outline(TEXT), [0, 2])
    assert "cells" in [concept for concept, _ in first]
    assert "cells" not in [concept for concept, _ in second]
    assert "mice" in [concept for concept, _ in second]


def test_a_query_makes_its_words_wanted_the_more_the_rarer_they_are() -> None:
    read = outline("All cells of mice grow. No cells of rats grow here. Most cells of dogs grow at night.")
    assert ConceptRanker(small_model(), Budget(6), "and Rats?").rank(read).argmax() == 1
    wanted = small_model().wanted(paper_of(read))
    more = wanted.weighed(hashes_of("the rats and cells")).weights - wanted.weighed().weights
    (rats,) = np.flatnonzero(wanted.concepts[0].keys == hashes_of("rats"))
    assert more[rats] == pytest.approx(0.1 * 50.0) and np.count_nonzero(np.abs(more) > 1e-9) == 1


def test_an_answer_to_a_query_is_extracted() -> None:
    found = Extractor("meetings").extract(MEETING, sentences=1, query="Why is the remote control yellow?")
    assert found.text == "Ann: The remote control is yellow, as bananas are."
    (wanted,) = Extractor("meetings").covered(found, "Why yellow?") or []
    assert wanted[0] == ("yellow", 1.0)
    asked = {"text": [MEETING] * 2, "query": ["Why yellow?", "What will it cost?"]}
    first, second = ExtractorMap("meetings", query_column="query", sentences=1)(asked)["summary"]
    assert "yellow" in first and "cost" in second


@pytest.mark.parametrize("method", ["meetings", "biomedical"])
def test_an_extract_has_the_length_of_summaries_and_hiporank_ranks_where_no_word_is_known(method: str) -> None:
    found = Extractor(method).extract("Кошки спят очень хорошо ночью. Собаки бегают быстро по улице.", sentences=1)
    assert found.text and found.sentences[0].score < 0
    assert Extractor(method).rules().budget.words == {"meetings": 113, "biomedical": 269}[method]
    assert Extractor(method).rules(sentences=2).budget == Budget(None, 2)


def test_a_meeting_is_covered_within_the_budget_that_counts_its_speakers() -> None:
    read = read_outline(MEETING.replace("Bob", "Bob of the red house").replace("Ann", "Ann of the blue house"))
    paper = paper_of(read)
    assert paper.lengths.tolist() == [len(text.split()) + 5 for text in read.texts]


def late_policy() -> Trees:
    """Prefers sentences behind the first two."""
    return stump(FEATURE_NAMES.index("place"), 1.5, 0.25, 0.75, len(FEATURE_NAMES))


def test_a_policy_chooses_by_its_trees_among_those_that_cover_anything() -> None:
    read = outline(f"{TEXT} Cells in water grew fast. Nothing stood near any other thing.")
    model = small_model()._replace(policy=late_policy(), words=11)
    scores = ConceptRanker(model, Budget(11)).rank(read)
    # The third is the first of those that the trees prefer, the last has no wanted concept.
    assert np.argsort(-scores)[:2].tolist() == [2, 3] and scores[:2].max() <= 1
    by_coverage = ConceptRanker(small_model(), Budget(11), "milk").rank(read)
    assert ConceptRanker(model, Budget(11), "milk").rank(read).tolist() == by_coverage.tolist()


def test_coverage_goes_on_where_extracts_are_longer_than_a_policy_has_learned() -> None:
    read = outline(f"{TEXT} Cells in water grew fast. Mice in milk died.")
    last = stump(FEATURE_NAMES.index("place"), 2.5, 0.25, 0.75, len(FEATURE_NAMES))
    model = small_model()._replace(policy=last, words=4)
    assert model.longest == 6
    by_coverage = np.argsort(-ConceptRanker(small_model()).rank(read)).tolist()
    for budget in (Budget(), Budget(100), Budget(sentences=50)):
        order = np.argsort(-ConceptRanker(model, budget).rank(read)).tolist()
        assert order[0] == 3 != by_coverage[0]
        assert sorted(order) == sorted(by_coverage)


def test_a_policy_sees_the_history() -> None:
    paper = paper_of(outline(TEXT))
    wanted = small_model().wanted(paper)
    cover = wanted.cover(paper)
    history = History(paper, wanted, cover)
    choice = PolicyChoice(history, cover, late_policy())
    before = history.features()
    assert before.shape == (3, len(FEATURE_NAMES)) and np.isfinite(before).all()
    choice.take(1)
    after = dict(zip(FEATURE_NAMES, history.features().T.tolist(), strict=True))
    changed = {name for name, old in zip(FEATURE_NAMES, before.T.tolist(), strict=True) if old != after[name]}
    assert changed <= set(FEATURE_NAMES[FEATURE_NAMES.index("left_words") :])
    assert after["chosen"] == [1, 1, 1] and after["chosen_in_section"] == [1, 1, 0]
    # Whether the sentence before each was chosen, and the one behind.
    assert (after["chosen_before"], after["chosen_behind"]) == ([0, 0, 1], [1, 0, 0])
    assert after["left_words"][1] == after["left_pairs"][1] == choice.rates()[1] == 0
    assert cover.chosen == choice.chosen == [1]


def write(folder: Path, model: ConceptModel) -> Path:
    for name, content in files_of(model, {}).items():
        (folder / name).write_bytes(content)
    return folder


def test_a_model_from_disk_ranks_as_the_one_that_was_written(tmp_path: Path) -> None:
    known = frequencies(hashes_of("cells mice"), [5, 4], [3, 0])
    model = small_model()._replace(known=(known, NOTHING), policy=late_policy())
    read = outline(TEXT)
    again = load_concepts(write(tmp_path, model))
    assert ConceptRanker(again, Budget(9)).rank(read).tolist() == ConceptRanker(model, Budget(9)).rank(read).tolist()


@pytest.mark.parametrize(("documents", "held"), [(65_535, "uint16"), (65_536, "int32")])
def test_counts_are_kept_in_16_bits_where_they_fit(tmp_path: Path, documents: int, held: str) -> None:
    known = frequencies(hashes_of("cells"), [documents], [documents])._replace(documents=documents)
    folder = write(tmp_path, small_model()._replace(known=(known, NOTHING)))
    assert str(load_file(folder / ARRAYS)["words.seen"].dtype) == held
    assert load_concepts(folder).known[0].seen.tolist() == [documents]


def test_without_a_budget_every_sentence_that_covers_more_is_chosen() -> None:
    read = outline(TEXT)
    scores = ConceptRanker(small_model()).rank(read)
    # In the order of choice, and it holds for every budget that all of them fit in.
    assert scores.tolist() == ConceptRanker(small_model(), Budget(100)).rank(read).tolist()


def test_the_model_of_biomedical_papers_comes_with_the_package() -> None:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        sample = json.loads(papers.readline())["article"]
    folder = find_method("biomedical", "method").concepts
    assert isinstance(folder, Path) and sum(path.stat().st_size for path in folder.iterdir()) <= 6_100_000
    assert load_concepts(folder).known[0].documents == 12_000
    found = Extractor("biomedical").extract(sample, words=100)
    assert found.sentences != Extractor("hiporank").extract(sample, words=100).sentences
    concepts = [concept for sentence in Extractor("biomedical").covered(found) for concept, _ in sentence]
    assert len(concepts) == len(set(concepts)) > 10


def test_the_model_of_meetings_prefers_what_was_decided() -> None:
    meeting = (
        "Ann: We had lunch with nice soup yesterday in the old town hall.\n"
        "Bob: The remote control should have a rubber case and a kinetic battery in it.\n"
    )
    found = Extractor("meetings").extract(meeting * 2, sentences=1)
    assert found.text.startswith("Bob: The remote control")


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"format": 1},
            {"kind": "extractor"},
            {"words": 3},
            {"words": {"documents": -1}},
            {"policy": {"base": "x"}},
            {"policy": {"base": 0.5}},
        ),
        *({"summary_words": 0}, {"language": "xx"}, {"sha256": "0"}, b"{", b"[]", b"\xff\xfe"),
    ],
    ids=str,
)
def test_a_changed_or_damaged_card_is_refused(tmp_path: Path, change: dict[str, object] | bytes) -> None:
    card = write(tmp_path, small_model()) / CARD
    changed = change if isinstance(change, bytes) else json.dumps({**json.loads(card.read_text()), **change}).encode()
    card.write_bytes(changed)
    with pytest.raises(UserError):
        load_concepts(tmp_path)


@pytest.mark.parametrize(("seen", "hits"), [([5], [6]), ([11], [1]), ([5], [-1])])
def test_frequencies_out_of_range_are_refused(tmp_path: Path, seen: list[int], hits: list[int]) -> None:
    known = frequencies(hashes_of("cells"), seen, hits)
    with refused("frequencies"):
        load_concepts(write(tmp_path, small_model()._replace(known=(known, NOTHING))))
