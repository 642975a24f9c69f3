"""What a model computes, learns and writes under transformers is what it computes, learns and writes without."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from kinds_of_summarizers import KINDS, TEXTS, model_of
from refusals import refused
from torch import Tensor

from pyramidions.hf import PyramidionsForConditionalGeneration as Model
from pyramidions.hf import PyramidionsTokenizer
from pyramidions.hf.modeling import PyramidionsCache
from pyramidions.inference import SavedModel
from pyramidions.nn import BeamSearch

each_kind = pytest.mark.parametrize("kind", KINDS)
few_kinds = pytest.mark.parametrize("kind", ["pooled pointer", "sliding window", "two memories", "concatenated"])
LENGTHS = {"min_length": 4, "max_length": 12}  # of `generate`: with the start, and the end
SUMMARY = torch.tensor([[2, 9, 31, 14, 7], [2, 40, 8, 8, 52], [2, 5, 66, 30, 11]])


def batch_of(saved: SavedModel, texts: list[str] = TEXTS, **options: object) -> dict[str, Tensor]:
    batch = PyramidionsTokenizer.from_saved(saved)(texts, padding=True, return_tensors="pt", **options)
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def precise(kind: str) -> SavedModel:
    """Return a model in float64, in which no rounding error decides between two summaries of almost equal scores."""
    saved = model_of(kind)
    return replace(saved, transformer=deepcopy(saved.transformer).double())


def written(row: Tensor) -> list[int]:
    """Return the tokens of a summary, without the start and padding."""
    return [token for token in row[1:].tolist() if token != 1]


@few_kinds
@torch.no_grad()
def test_padding_on_either_side_changes_nothing(kind: str) -> None:
    saved = model_of(kind)
    model, batch = Model.from_saved(saved), batch_of(saved)
    logits = model(**batch, decoder_input_ids=SUMMARY).logits
    for side in ("left", "right"):
        padded = batch_of(saved, padding_side=side, pad_to_multiple_of=64)
        assert padded["input_ids"].size(1) > batch["input_ids"].size(1)
        torch.testing.assert_close(model(**padded, decoder_input_ids=SUMMARY).logits, logits, atol=1e-4, rtol=1e-4)


@each_kind
@torch.no_grad()
def test_logits_are_those_of_our_transformer_and_so_are_cached_steps(kind: str) -> None:
    saved = model_of(kind)
    model, batch = Model.from_saved(saved), batch_of(saved)
    read = model.get_encoder()(**batch)
    whole = model(encoder_outputs=read, decoder_input_ids=SUMMARY).logits
    torch.testing.assert_close(whole, saved.transformer(batch["input_ids"], SUMMARY))
    first = model(encoder_outputs=read, decoder_input_ids=SUMMARY[:, :2], use_cache=True)
    steps = [first.logits]
    for place in range(2, 5):
        out = model(encoder_outputs=read, decoder_input_ids=SUMMARY[:, place : place + 1], cache=first.cache)
        steps.append(out.logits)
    assert first.cache.get_seq_length() == 5
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-4, rtol=1e-4)


@few_kinds
def test_greedy_tokens_are_those_of_our_search(kind: str) -> None:
    saved = precise(kind)
    batch = batch_of(saved)
    found = Model.from_saved(saved).generate(**batch, num_beams=1, no_repeat_ngram_size=2, **LENGTHS)
    ours = BeamSearch(1, min_len=3, max_len=10, no_repeat_ngram=2)(saved.transformer, batch["input_ids"])
    assert [written(row) for row in found] == [best.tokens.tolist() for (best,) in ours]
    assert len({tuple(written(row)) for row in found}) > 1


@few_kinds
def test_a_beam_writes_the_same_with_and_without_a_cache(kind: str) -> None:
    saved = precise(kind)
    model, batch = Model.from_saved(saved), batch_of(saved)
    options = {"num_beams": 3, "num_return_sequences": 2, "output_scores": True, "return_dict_in_generate": True}
    cached, uncached = (model.generate(**batch, **LENGTHS, **options, use_cache=use) for use in (True, False))
    assert cached.sequences.tolist() == uncached.sequences.tolist() and len(cached.sequences) == 6
    torch.testing.assert_close(cached.sequences_scores, uncached.sequences_scores, atol=1e-4, rtol=1e-4)


def test_a_beam_ends_as_ours_where_both_mean_the_same() -> None:
    saved = precise("pooled")
    batch = batch_of(saved)
    # All summaries have the same length, so that neither search stops early.
    found = Model.from_saved(saved).generate(**batch, num_beams=4, min_length=8, max_length=9, early_stopping=True)
    ours = BeamSearch(4, min_len=7, max_len=7)(saved.transformer, batch["input_ids"])
    assert [written(row) for row in found] == [best.tokens.tolist() for best, *_ in ours]


def test_a_model_that_writes_s_first_does_so_in_generate() -> None:
    saved = model_of("vanilla", byte_level=True)
    model, batch = Model.from_saved(saved), batch_of(saved)
    found = model.generate(**batch, num_beams=1, **LENGTHS)
    ours = BeamSearch(1, min_len=3, max_len=10, prefix=(0,))(saved.transformer, batch["input_ids"])
    assert [written(row) for row in found] == [best.tokens.tolist() for (best,) in ours]
    assert {row[1] for row in found.tolist()} == {0}


def test_by_default_generate_decodes_as_the_model_was_made_for() -> None:
    found = Model.from_saved(model_of("vanilla")).generation_config
    # At most 24 tokens with the end, and the start.
    assert (found.num_beams, found.max_length, found.min_length, found.length_penalty) == (8, 25, 24, 1.0)
    assert (found.eos_token_id, found.pad_token_id, found.decoder_start_token_id) == (2, 1, 2)


def test_no_summary_is_longer_than_the_model_writes() -> None:
    saved = model_of("pooled")
    with pytest.warns(UserWarning):
        found = Model.from_saved(saved).generate(**batch_of(saved), min_length=90, max_length=99)
    assert found.shape == (3, 25) and set(found[:, -1].tolist()) == {2}


@few_kinds
def test_the_loss_is_the_cross_entropy_of_labels_but_minus_100(kind: str) -> None:
    saved = model_of(kind)
    labels = torch.tensor([[9, 31, 14, 7, 2], [40, 8, 2, -100, -100], [5, 2, -100, -100, -100]])
    prefix = torch.tensor([[2, 9, 31, 14, 7], [2, 40, 8, 2, 1], [2, 5, 2, 1, 1]])
    model, batch = Model.from_saved(saved), batch_of(saved)
    out = model(**batch, labels=labels)
    log_probs = saved.transformer(batch["input_ids"], prefix).log_softmax(dim=-1)
    terms = [-log_probs[row, place, label] for row, place, label in _places(labels)]
    torch.testing.assert_close(out.loss, torch.stack(terms).mean())
    assert model.prepare_decoder_input_ids_from_labels(labels).tolist() == prefix.tolist()
    # Of several batches whose gradients are summed.
    summed = model(**batch, labels=labels, num_items_in_batch=torch.tensor(20)).loss
    torch.testing.assert_close(summed, torch.stack(terms).sum() / 20)
    tuple_of = model(**batch, labels=labels, return_dict=False)
    assert torch.equal(tuple_of[0], out.loss) and torch.equal(tuple_of[1], out.logits)
    learning = Model(model.config)
    learning.train()(**batch, labels=labels).loss.backward()
    idle = [name for name, weight in learning.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert idle == []


def _places(labels: Tensor) -> list[tuple[int, int, int]]:
    rows = enumerate(labels.tolist())
    return [(row, place, label) for row, each in rows for place, label in enumerate(each) if label != -100]


def test_new_weights_are_those_that_our_parts_begin_with() -> None:
    config = Model.from_saved(model_of("pooled")).config
    torch.manual_seed(5)
    model = Model(config)
    weight = model.encoder.layers[0].sublayers["self_attention"].function.projections.q_proj.weight
    bound = (6 / 32) ** 0.5 / 2**0.5  # Xavier, uniform, with the gain of fairseq
    assert 0.9 * bound < weight.abs().max() <= bound
    assert F.embedding(torch.tensor([1]), model.get_input_embeddings().weight).eq(0).all()


READ = {"input_ids": SUMMARY, "labels": SUMMARY}
MASK = torch.tensor([[0, 1, 1, 1, 1]] * 3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"decoder_input_ids": SUMMARY}, "`input_ids`"),
        ({"input_ids": SUMMARY}, "`labels`"),
        ({**READ, "inputs_embeds": SUMMARY}, "`inputs_embeds`"),
        ({**READ, "output_attentions": True}, "`output_attentions`"),
        ({"input_ids": torch.full((1, 65), 9), "labels": SUMMARY[:1]}, "at most 64 tokens, but has 65"),
        ({"input_ids": SUMMARY[:1], "labels": torch.full((1, 25), 9)}, "at most 24 tokens, its end included"),
        ({"encoder_outputs": (SUMMARY,), "labels": SUMMARY}, "`encoder_outputs`"),
        ({**READ, "decoder_attention_mask": MASK.bool()}, "`decoder_attention_mask`"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, dict) else "",
)
def test_what_a_model_cannot_do_is_named(arguments: dict[str, object], named: str) -> None:
    with refused(named):
        Model.from_saved(model_of("pooled"))(**arguments)


def test_a_cache_of_transformers_is_refused() -> None:
    saved = model_of("pooled")
    model = Model.from_saved(saved)
    with refused("cache_implementation"):
        model.generate(**batch_of(saved), cache_implementation="static", **LENGTHS)
    with refused("new_num_tokens"):
        model.resize_token_embeddings(100)
    assert PyramidionsCache(model.decoder.new_cache()).get_seq_length() == 0
