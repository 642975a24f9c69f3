"""Metrics with encoders compute what the library's own models say, by loops over tokens, n-grams and pairs."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from string import punctuation
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from scipy.optimize import linprog
from small_encoders import (
    ENCODER_DECODERS,
    TEXTS,
    classifier,
    ids_and_vectors,
    save_bert,
    save_encoder_decoder,
    save_roberta,
    transformers,
)

from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.encoders import loading
from pyramidions.scoring.encoders.raters import LikelihoodRater

NLI = ["contradiction", "neutral", "entailment"]
SENTENCES = [TEXTS[1], TEXTS[2], "Bees are models.", TEXTS[0]]
SUMMARY, DOCUMENT = " ".join(TEXTS[:2]), " ".join(SENTENCES)
close = np.testing.assert_allclose


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert"), length=24)


def made(name: str, examples: Sequence[Example] = (), **options: Any) -> Any:
    """Return a metric that has seen examples; models are folders."""
    given = {option: str(value) if isinstance(value, Path) else value for option, value in options.items()}
    metric = METRICS.build(name, {}, **given)
    metric.fit(examples)
    return metric


def scored(name: str, *examples: Example, **options: Any) -> np.ndarray:
    return made(name, examples, **options).score(examples)


def loaded(folder: Any, kind: str) -> tuple[Any, Any]:
    model = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def rarity(holders: Sequence[set[int]], piece: int) -> float:
    """Inverse document frequency, as section 3 of BERTScore has it."""
    return math.log((len(holders) + 1) / (sum(piece in holder for holder in holders) + 1))


# BERTScore and MoverScore


def bertscore(folder: Path, summary: str, reference: str, references: Sequence[str] | None = None) -> list[float]:
    """BERTScore as section 3 of the paper defines it, a token at a time; by idf of ``references``."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    holders = [set(tokenizer.encode(text)) for text in references or ()]

    def mean_of_best(of: str, among: str) -> float:
        own, others = ids_and_vectors(folder, of, 2), ids_and_vectors(folder, among, 2)
        total = weights = 0.0
        for number, (piece, vector) in enumerate(zip(*own, strict=True)):
            inside = 0 < number < len(own[0]) - 1
            weight = (rarity(holders, piece) if holders else 1.0) * inside
            best = max(float(vector @ other / (vector.norm() * other.norm())) for other in others[1])
            total += weight * best
            weights += weight
        return total / weights

    precision, recall = mean_of_best(summary, reference), mean_of_best(reference, summary)
    return [100 * precision, 100 * recall, 100 * 2 * precision * recall / (precision + recall)]


def test_bertscore_equals_loops_over_tokens_and_idf_counts_references(bert: Path) -> None:
    of_bert = {"embedding_model": bert, "embedding_layer": 2}
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[0]), (TEXTS[1], "The fox.")]
    examples = [Example(summary, (reference,)) for summary, reference in pairs]
    close(scored("bertscore", *examples, **of_bert), [bertscore(bert, *pair) for pair in pairs], atol=1e-4)
    references = [reference for _, reference in pairs]
    found = scored("bertscore", *examples, **of_bert, bertscore_idf=True)
    close(found, [bertscore(bert, *pair, references) for pair in pairs], atol=1e-4)
    assert scored("bertscore", Example("a", ("",)), **of_bert).tolist() == [[0, 0, 0]]


def moverscore(
    folder: Path, summaries: list[str], references: list[str], n: int, dropped: Sequence[str]
) -> list[float]:
    """MoverScore of each pair, a token at a time, with a linear program for the transport."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def ngrams(text: str, texts: list[str]) -> list[tuple[np.ndarray, float]]:
        ids, vectors = ids_and_vectors(folder, text, 2)
        holders = [set(tokenizer.encode(other)) for other in texts]
        kept = []
        for piece, vector in zip(ids, vectors, strict=True):
            word = tokenizer.convert_ids_to_tokens(piece)
            if "##" not in word and word not in punctuation and word not in dropped:
                kept.append(((vector / vector.norm()).numpy(), rarity(holders, piece)))
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


def test_moverscore_equals_loops_over_ngrams_and_marks_alone_are_nothing(bert: Path, tmp_path: Path) -> None:
    summaries, references = [TEXTS[0], TEXTS[2], "models pool"], [TEXTS[1], TEXTS[0], "The fox jumps."]
    (tmp_path / "words").write_text("The\nby f")
    examples = [Example(summary, (reference,)) for summary, reference in zip(summaries, references, strict=True)]
    of_bert = {"embedding_model": bert, "embedding_layer": 2}
    found = scored("moverscore", *examples, **of_bert, stop_words=tmp_path / "words")
    expected = [moverscore(bert, summaries, references, n, ["the", "by", "f"]) for n in (1, 2)]
    close(found.T, expected, atol=1e-4)
    marks = scored("moverscore", Example("?!", (TEXTS[0],)), Example("fox", ("a",)), **of_bert)
    assert marks[0].tolist() == [0, 0]


@pytest.mark.parametrize(("name", "options"), [("bertscore", {"bertscore_idf": True}), ("moverscore", {})])
def test_where_all_weights_are_0_tokens_weigh_the_same_and_a_remark_says_so(
    name: str, options: dict[str, Any], bert: Path
) -> None:
    example = Example(TEXTS[0], (TEXTS[0],))
    metric = made(name, [example], embedding_model=bert, embedding_layer=2, **options)
    close(metric.score([example]), 100, atol=1e-4)
    (remark,) = metric.remarks()
    assert remark.startswith(f"{name}: 2 times a text had no word that is rarer than others")


def test_a_well_known_model_has_its_best_layer_and_another_its_last(bert: Path, tmp_path: Path) -> None:
    metric = made("bertscore", embedding_model=bert)
    assert metric.embedder.layer == 3
    assert metric.remarks() == ["bertscore: no layer of this model is known to be best, so its last (3) is used."]
    metric = made("bertscore", embedding_model=save_bert(tmp_path / "deberta-v3-small", num_hidden_layers=5))
    assert (metric.embedder.layer, metric.remarks()) == (4, [])
    with refused("`embedding_layer` must be from 1 to 3"):
        made("bertscore", embedding_model=bert, embedding_layer=4)


def test_the_first_word_of_roberta_has_its_space(tmp_path: Path) -> None:
    tokens = made("bertscore", embedding_model=save_roberta(tmp_path)).embedder.tokens(["models pool", "pool"])
    assert tokens[0].ids[-2] == tokens[1].ids[1]


def test_the_signature_tells_lists_of_stop_words_apart_and_what_is_missing_is_named(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for number, words in enumerate(("a the", "The\nA", "a of")):
        (tmp_path / str(number)).write_text(words)
        found.add(made("moverscore", embedding_model=bert, stop_words=tmp_path / str(number)).signature())
    assert len(found) == 2
    with refused("`stop_words`"):
        made("moverscore", embedding_model=bert, stop_words=tmp_path / "words")
    monkeypatch.setitem(sys.modules, "ot", None)
    with refused("'POT<"):
        made("moverscore", embedding_model=bert)


# BARTScore and BLEURT


@torch.no_grad()
def likelihood(folder: str, given: str, text: str) -> float:
    """The mean log-probability of the tokens of a text, token by token, in a pass of its own for each."""
    model, tokenizer = loaded(folder, "Seq2SeqLM")
    read, ids = (
        tokenizer(given, truncation=True, max_length=64, return_tensors="pt").input_ids,
        tokenizer(text).input_ids,
    )
    total = 0.0
    for place, token in enumerate(ids):
        before = torch.tensor([[model.config.decoder_start_token_id, *ids[:place]]])
        logits = model(input_ids=read, decoder_input_ids=before).logits[0, -1].double()
        total += float(logits[token] - logits.exp().sum().log())
    return total / len(ids)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_bartscore_is_the_mean_log_likelihood_of_each_token_after_the_others(family: str, tmp_path: Path) -> None:
    folder, source = save_encoder_decoder(tmp_path, family), " ".join([DOCUMENT] * 3)
    # An empty text is its marks alone.
    for text, reference in (("Bees fly.", "A fox reads."), ("", "Bees.")):
        example = Example(text, (reference,), source if family == "bart" else "The fox reads fast.")
        precision, recall = likelihood(folder, reference, text), likelihood(folder, text, reference)
        found = scored("bartscore", example, bartscore_model=folder)
        close(found, [[precision, recall, (precision + recall) / 2]], atol=1e-4)
        found = scored("bartscore_faithfulness", example, bartscore_model=folder)
        close(found, [[likelihood(folder, example.source or "", text)]], atol=1e-4)
    # One model serves both.
    one, other = (made(name, bartscore_model=folder) for name in ("bartscore", "bartscore_faithfulness"))
    assert vars(one)["_model"] is vars(other)["_model"]


def test_a_decoder_that_reads_less_than_its_encoder_gets_as_much_as_it_reads(tmp_path: Path) -> None:
    folder, document = save_encoder_decoder(tmp_path, "led"), " ".join(TEXTS)
    metric, (_, tokenizer) = made("bartscore", bartscore_model=folder), loaded(folder, "Seq2SeqLM")
    ids = tokenizer(document).input_ids
    # The encoder reads it whole.
    assert 16 < len(ids) <= 64
    (found,) = metric.score([Example(document, ("Bees.",))])
    kept = tokenizer.decode(ids[:15], skip_special_tokens=True)
    close(found[:2], [likelihood(folder, "Bees.", kept), likelihood(folder, document, "Bees.")], atol=1e-4)
    assert metric.remarks()[0].startswith("bartscore: 1 of 2 pairs")


def test_models_that_do_not_end_or_begin_texts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, tokenizer = save_encoder_decoder(tmp_path), tmp_path / "tokenizer.json"
    found = loading.load(folder, LikelihoodRater.head)
    with monkeypatch.context() as patched, refused("`bartscore_model`"):
        patched.setattr(loading, "load", lambda *_: found._replace(model=found.model.get_encoder()))
        LikelihoodRater(folder)
    tokenizer.write_text(json.dumps({**json.loads(tokenizer.read_text()), "post_processor": None}))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with refused("tokenizer that ends texts"):
        made("bartscore", bartscore_model=folder)


@torch.no_grad()
def logits_of(folder: Path, first: str, second: str, **truncation: Any) -> torch.Tensor:
    """What the library's own classifier says of one pair: (labels,)."""
    model, tokenizer = loaded(folder, "SequenceClassification")
    found: torch.Tensor = model(**tokenizer([first], [second], return_tensors="pt", **truncation)).logits[0]
    return found


def test_bleurt_is_what_the_librarys_own_model_says_of_a_pair_the_reference_first(tmp_path: Path) -> None:
    folder, long = classifier(tmp_path, [""], 40), "fox " * 30
    # An empty summary gets what the model gives it. Of a long pair, the longer text is truncated.
    pairs = [("Bees fly.", "Bees"), ("", "Bees"), ("Bees fly.", long)]
    found = scored("bleurt", *(Example(summary, (reference,)) for summary, reference in pairs), bleurt_model=folder)
    cut = {"truncation": True, "max_length": 40}
    close(found, [[float(logits_of(folder, reference, text, **cut))] for text, reference in pairs], atol=1e-4)
    # Of 40 tokens, 3 are marks and 8 the summary; a fox is three.
    assert found[2] == pytest.approx(float(logits_of(folder, "fox " * 9 + "fo", "Bees fly.")), abs=1e-4)


def test_bleurt_refuses_models_of_several_labels_or_without_a_pooler(tmp_path: Path) -> None:
    with refused("`bleurt_model` must have one label"):
        made("bleurt", bleurt_model=classifier(tmp_path, NLI))
    folder = classifier(tmp_path, [""])
    kept = {name: weight for name, weight in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    with refused("bert.pooler.dense.bias"):
        made("bleurt", bleurt_model=folder)


# entailment


def chance(folder: Path, premise: str, claim: str, label: str, length: int = 60) -> float:
    """What the library's own model says of one pair."""
    found = logits_of(folder, premise, claim, truncation="only_first", max_length=length).softmax(dim=-1)
    return 100 * float(found[transformers.AutoConfig.from_pretrained(folder).label2id[label]])


@pytest.mark.parametrize(
    ("save", "labels", "entails", "contradicts"),
    [
        (save_bert, NLI, "entailment", "contradiction"),
        (save_roberta, ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], "SUPPORTS", "REFUTES"),
    ],
)
def test_entailment_is_the_mean_over_sentences_of_the_best_in_the_document(
    save: Any, labels: list[str], entails: str, contradicts: str, tmp_path: Path
) -> None:
    folder = classifier(tmp_path, labels, 60, save=save)
    examples = [Example(SUMMARY, ("",), DOCUMENT), Example(SUMMARY, ("",), ""), Example("", ("",), "")]
    found = scored("entailment", *examples, entailment_model=folder)
    # SummaC-ZS is the difference of the two.
    expected = [
        np.mean([max(chance(folder, premise, claim, label) for premise in SENTENCES) for claim in TEXTS[:2]])
        for label in (entails, contradicts)
    ]
    # An empty document entails and contradicts nothing.
    close(found, [expected, [0, 0], [0, 100]], atol=1e-4)


def test_a_whole_document_is_truncated_and_a_long_claim_leaves_it_half_of_the_model(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "two", ["CORRECT", "INCORRECT"], 50)
    metric, long = made("entailment", entailment_model=folder, entailment_premise="document"), DOCUMENT * 3
    found = metric.score([Example(TEXTS[0], ("",), long)])
    close(found, [[chance(folder, long, TEXTS[0], label, 50) for label in ("CORRECT", "INCORRECT")]], atol=1e-4)
    assert metric.remarks()[0].startswith("entailment: 1 of 1 pairs")
    folder = classifier(tmp_path / "three", NLI, 20)
    (found,) = scored("entailment", Example("fox " * 60, ("",), DOCUMENT), entailment_model=folder)
    # A fox is three pieces: ten of them are three foxes and a letter.
    best = max(chance(folder, premise, "fox fox fox f", "entailment", 20) for premise in SENTENCES)
    assert found[0] == pytest.approx(best, abs=1e-4)
    # A pair that fits stays whole: twelve pieces of a claim, one of a premise, and three around them.
    (found,) = scored("entailment", Example("fox fox fox fox", ("",), "f"), entailment_model=folder)
    assert found[0] == pytest.approx(chance(folder, "f", "fox fox fox fox", "entailment", 20), abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "argument"),
    [
        (["LABEL_0", "LABEL_1"], "entailment_model"),
        (["entailment", "neutral", "other"], "entailment_model"),
        (["entailment", "contradiction", "contradicted"], "entailment_model"),
        # Two labels need the whole document.
        (["entailment", "not_entailment"], "entailment_premise"),
    ],
)
def test_other_labels_are_refused(labels: list[str], argument: str, tmp_path: Path) -> None:
    with refused(argument):
        made("entailment", entailment_model=classifier(tmp_path, labels))


def test_a_tokenizer_without_padding_is_refused(tmp_path: Path) -> None:
    folder = classifier(tmp_path, NLI)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pad_token": None}))
    with refused("padding token"):
        made("entailment", entailment_model=folder)
