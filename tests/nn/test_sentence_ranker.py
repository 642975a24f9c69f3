"""Scores of units, compared with a loop over documents and vectors."""

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from whole_models import LONGEST, MARKER, PAD, VOCABULARY, batch

from pyramidions.models import build_extractor, extractor_preset
from pyramidions.nn import SentenceRanker
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.upsampling import UPSAMPLING

TINY = {
    "embed_dim": 8,
    "ffn_embed_dim": 16,
    "num_heads": 2,
    "encoder_layers": 3,
    "dropout": 0.0,
    "max_source_positions": LONGEST,
    "self_attention": "full",
}
LENGTHS = (24, 7, 13, 1)
KINDS = [kind for kind in POOLING.names if POOLING[kind].has_provenance]


def ranker(pooling: str = "markers", lengths: str | None = "6,None,None", **overrides: Any) -> SentenceRanker:
    torch.manual_seed(0)
    pools = {"pooling": pooling, "pooling_lengths": lengths} if lengths else {"pooling_lengths": None}
    config = extractor_preset("extractor", **{**TINY, **pools, **overrides})
    return build_extractor(config, VOCABULARY, MARKER, PAD)


def expected(model: SentenceRanker, source: Tensor) -> list[dict[int, float]]:
    """Return the score of each unit that has one, document by document, vector by vector."""
    found = []
    for tokens in source:
        tokens = tokens[tokens != PAD][None]
        encoded = model.encoder(tokens, tokens.eq(PAD))
        places = list(range(tokens.size(1)))  # of each vector
        for pooled in encoded.pooled.values():
            assert pooled.sources is not None and pooled.weights is not None
            strongest = pooled.weights[0].argmax(-1).tolist()
            places = [places[int(pooled.sources[0, k, g])] for k, g in enumerate(strongest)]
        units = [int((tokens[0, 1 : place + 1] == MARKER).sum()) for place in range(tokens.size(1))]
        scores: dict[int, float] = {}
        before = None
        for vector, unit in enumerate(units[place] for place in places):
            if unit != before:
                score = F.linear(encoded.sequence.x[0, vector], *model.output.parameters())
                scores.setdefault(unit, float(score))
            before = unit
        found.append(scores)
    return found


def rated(scores: Tensor) -> list[dict[int, float]]:
    return [{unit: float(score) for unit, score in enumerate(row.detach()) if score > -torch.inf} for row in scores]


# How attention reads a document is the encoder's promise; three read other units than the others.
@pytest.mark.parametrize(
    ("attention", "kinds"),
    [
        *(("full", (kind,)) for kind in KINDS),
        *(("blockwise", (kind, "markers")) for kind in KINDS if kind != "markers"),
        *((attention, kinds) for attention in ("full", "segments", "transient_global") for kinds in ((), ("mean",))),
    ],
)
@torch.no_grad()
def test_every_unit_has_the_score_of_its_first_vector(attention: str, kinds: tuple[str, ...]) -> None:
    lengths = {(): None, ("markers",): "6,None,None"}.get(kinds, "12,None,None" if len(kinds) == 1 else "12,6,None")
    model = ranker(" | ".join(kinds), lengths, self_attention=attention).eval()
    source = batch(*LENGTHS)
    found = rated(model(source))
    for ours, wanted in zip(found, expected(model, source), strict=True):
        assert ours == pytest.approx(wanted, abs=1e-5)
    # Gumbel's vectors are soft mixtures, which may all have one strongest member.
    assert len(found[0]) > 1 or kinds[:1] == ("gumbel_topk",)


def test_there_is_a_column_for_each_unit_of_the_longest_document_and_no_score_beyond_the_pooled_length() -> None:
    source = torch.tensor([[5, MARKER, 6, MARKER, 7, 8], [MARKER, 5, 6, PAD, PAD, PAD]])
    assert ranker().eval()(source).isfinite().tolist() == [[True, True, True], [True, False, False]]
    few = ranker(lengths="2,None,None").eval()(source)
    assert few.isfinite().tolist() == [[True, True, False], [True, False, False]]


def test_an_hourglass_rates_every_unit_although_its_pooling_has_no_provenance() -> None:
    source = batch(*LENGTHS)
    for kind, upsampling in itertools.product(("max", "funnel"), UPSAMPLING.names):
        model = ranker(kind, "12,None,None,None", upsampling=upsampling, encoder_layers=4).eval()
        assert rated(model(source)) == rated(model(source)) and model(source)[0].isfinite().all()
