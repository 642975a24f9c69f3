"""Explanations with made-up weights, for tests of what is shown of them."""

import json
import re

import torch
from torch import Tensor

from pyramidions.inference import Explanation, Summary
from pyramidions.inference.explanation import LayerTrace, Trace
from pyramidions.nn.provenance import Provenance


def example(length: int = 6, vectors: int = 3, written: tuple[str, ...] = (" ge", "ne", " map", "")) -> Explanation:
    """Return an explanation with made-up weights, pooled after the second of three layers."""
    torch.manual_seed(0)
    weights = torch.rand(vectors, length).square()
    provenance = weights / weights.sum(1, keepdim=True)
    attention = torch.rand(len(written), vectors).softmax(-1)
    layers = [
        LayerTrace(1, length, length, None, torch.ones(length)),
        LayerTrace(2, length, vectors, 0.625, provenance.sum(0)),
        LayerTrace(3, vectors, vectors, None, provenance.sum(0)),
    ]
    return Explanation(
        Summary("gene map", -1.5, len(written), length + 4, length),
        [*(f" w{i}" for i in range(length - 1)), ""],
        list(written),
        Trace(layers, vectors, Provenance(provenance[None], None, length), attention),
    )


def matrix(provenance: Provenance | None) -> Tensor:
    """Return what each vector of the only document is made of: (K, L)."""
    assert provenance is not None
    return provenance.of(torch.eye(provenance.weights.size(1))[None])[0]


def page_data(page: str) -> dict:
    """Return all that a page shows."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def only_document(page: str) -> dict:
    """Return the only document of a page."""
    (document,) = page_data(page)["documents"]
    return document


def texts_of(document: dict) -> list[str]:
    """Return the text of each piece of a document on a page, without marks."""
    ends = set(document["marks"]["mark"])
    texts = ["" if place in ends else text for place, text in enumerate(document["segments"])]
    cuts = [start for tag, start, _ in document["blocks"] if tag == "h2"] or [0]
    return ["".join(texts[start:end]) for start, end in zip(cuts, [*cuts[1:], len(texts)], strict=True)]
