"""What every encoder promises, of whatever attention, pooling, scorer and stack it is made."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from covering import NIGHTLY, covering
from whole_models import PAD, STACKS, batch, combinations, documents, encode, tiny

from pyramidions.nn import BeamSearch
from pyramidions.nn.attention import ATTENTION, Feature
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS

LENGTHS = (24, 7, 13, 1)
#: pooling and scorer in which each attention is tried on a push
USUAL = {("none", "linear"), ("soft_topk", "linear")}
#: attention before which each pooling and scorer is tried
READ_BY = "blockwise"
Fields = dict[str, Any]


def everywhere(projections: str) -> Fields:
    return dict.fromkeys(("encoder_projections", "decoder_projections", "cross_projections"), projections)


#: each kind of the other axes
OTHERS: list[tuple[str, str, Fields]] = [
    *(("blockwise", "soft_topk", {"feed_forward": kind}) for kind in FEED_FORWARD.names),
    *(("blockwise", "soft_topk", {"encoder_positions": kind, "decoder_positions": kind}) for kind in POSITIONS.names),
    *(("blockwise", "funnel", everywhere(kind)) for kind in PROJECTIONS.names),
    *(("full", "mean", {"pooling_lengths": "12,None,None", "upsampling": kind}) for kind in ("repeat", "top_down")),
    ("lsh", "none", everywhere("conv")),
    ("linformer", "none", everywhere("multiplicative_conv")),
    ("blockwise", "soft_topk", {"recurrence": "sru(dim=3)", **STACKS["reversible"]}),
    ("sliding_window", "markers", {"recurrence": "sru(dim=3)", "normalize_before": True}),
    ("blockwise", "none", {"cross_attention": "hepos(stride=2)", **everywhere("conv"), **STACKS["reversible"]}),
    ("sliding_window", "soft_topk", {"global_vectors": 3, "normalize_before": True}),
    ("sliding_window", "soft_topk", {"global_vectors": 3, "pooling_lengths": "None,12,None", **STACKS["reversible"]}),
    ("block_global", "mean", {"global_vectors": 3, "pooling_lengths": "12,None,None", "normalize_before": True}),
    *(
        ("sliding_window", kind, {"global_tokens": 2, "global_projections": "dense"})
        for kind in ("soft_topk", "mean", "markers", "gumbel_topk")
    ),
    # More than D / H: all keys and values are projected.
    ("sliding_window", "none", {"global_tokens": 17, "global_projections": "dense"}),
]
#: attention, pooling, scorer, and further fields; combinations stand in one of the stacks, one after the other
STACKED = [(*case, [*STACKS.values()][number % len(STACKS)]) for number, case in enumerate(combinations())]
OF_OTHERS = [(attention, pooling, "linear", fields) for attention, pooling, fields in OTHERS]
axes = ("attention", "pooling", "scorer", "fields")


def marked(cases: Iterable[tuple[str, str, str, Fields]]) -> list[object]:
    mark, found = getattr(pytest.mark, NIGHTLY), []
    for case in cases:
        attention, *pooled, _ = case
        on_a_push = tuple(pooled) in USUAL or attention == READ_BY
        found.append(pytest.param(*case, marks=() if on_a_push else mark))
    return [*found, *OF_OTHERS]


@pytest.mark.parametrize(axes, marked(STACKED))
def test_it_trains_a_step_that_reaches_every_parameter_and_decodes(
    attention: str, pooling: str, scorer: str, fields: Fields
) -> None:
    model = tiny(attention, pooling, scorer, **fields).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens, targets = batch(*LENGTHS), batch(6, 3, 5, 2, seed=1)
    prefix = torch.cat([torch.full((4, 1), 2), targets[:, :-1]], dim=1)
    with torch.inference_mode():
        # What is kept here must not stop a gradient.
        model(tokens, prefix)
    F.cross_entropy(model(tokens, prefix).flatten(0, 1), targets.flatten(), ignore_index=PAD).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name
        # What only orders vectors for a hard selection gets zeros, and so does a bias of all keys alike.
        selects = pooling == "hard_topk" and "scorer" in name
        assert weight.grad.any() or selects or "k_proj.bias" in name, name
    optimizer.step()
    for found in BeamSearch(beam=2, min_len=2, max_len=4)(model.eval(), tokens):
        assert len(found) == 2 and all(3 <= len(one.tokens) <= 5 and one.score < 0 for one in found)


@pytest.mark.parametrize(axes, marked((*case, {}) for case in combinations()))
@torch.no_grad()
def test_a_document_is_read_alike_alone_in_a_batch_and_before_any_padding(
    attention: str, pooling: str, scorer: str, fields: Fields
) -> None:
    lengths = (13, 7, 11, 1)
    # In float64: products of other shapes round differently, more or less by processor.
    model, tokens = tiny(attention, pooling, scorer, **fields).eval().double(), batch(*lengths)
    alone = [encode(model, tokens[row : row + 1, :length])[0][0] for row, length in enumerate(lengths)]
    for more in (0, 1, 11):
        padded = F.pad(tokens, (0, more), value=PAD)
        torch.testing.assert_close(documents(*encode(model, padded)), alone, rtol=0, atol=1e-5)
    # Lengths that are given or asked from the mask are the same.
    for asked, given in zip(encode(model, tokens), encode(model, tokens, list(lengths)), strict=True):
        assert asked.equal(given)


@pytest.mark.parametrize(("attention", "pooling", "scorer"), covering(combinations(), strength=1))
@torch.no_grad()
def test_every_document_is_read_and_in_its_order(attention: str, pooling: str, scorer: str) -> None:
    model, tokens = tiny(attention, pooling, scorer).eval(), batch(24)
    expected = encode(model, tokens)[0]
    # Inside units positions count from their start: units that move as a whole give the same vectors.
    moved = [] if Feature.UNITS in ATTENTION[attention].supports else [tokens.roll(5, dims=1)]
    for other in (*moved, batch(24, seed=3)):
        found = encode(model, other)[0]
        # How many sentences or segments there are, or are deleted, depends on the text.
        assert found.shape == expected.shape or pooling in ("markers", "segments", "delete_gate")
        assert found.shape != expected.shape or not torch.allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("pooling", ["none", "funnel", "soft_topk"])
@torch.no_grad()
def test_pre_norm_and_post_norm_differ_and_recomputing_does_not(pooling: str) -> None:
    tokens = batch(*LENGTHS)
    memory = {name: encode(tiny("blockwise", pooling, **fields).eval(), tokens)[0] for name, fields in STACKS.items()}
    assert memory["recomputed"].equal(memory["post-norm"])
    assert not torch.allclose(memory["pre-norm"], memory["post-norm"], atol=1e-3)
