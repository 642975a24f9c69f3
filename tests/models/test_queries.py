"""What a whole model does with the query before a document."""

from typing import Any

import torch
from reading import END, MARKER, PAD, VOCABULARY, reached, small
from torch import Tensor

from pyramidions.nn import Transformer

POOLED = {"encoder_layers": 2, "pooling_lengths": "32,16"}
BLOCKS = {"self_attention": "blockwise(block_size=8)"}


def model(**overrides: Any) -> Transformer:
    return small(**{"embed_dim": 32, "max_source_positions": 128, **overrides})


def asked(*query: int) -> Tensor:
    """Return a document of many different tokens behind a query."""
    document = torch.randint(5, VOCABULARY, (100,), generator=torch.Generator().manual_seed(0))
    return torch.cat([torch.tensor([*query, END]), document, torch.tensor([END])])[None]


@torch.no_grad()
def kept(of: Transformer, tokens: Tensor) -> set[int]:
    """Return which tokens of the document the vectors that the decoder reads are mostly made of."""
    position = of.encoder(tokens, tokens.eq(PAD)).sequence.position
    assert position is not None
    separator = tokens[0].tolist().index(END)
    return {place - separator - 1 for place in position[0].tolist() if place > separator}


def test_two_queries_keep_different_tokens_of_one_document() -> None:
    """What the query scorer keeps depends on what is asked.

    A linear scorer sees the query only through the attention of the layers below. Where attention stays within blocks,
    nothing of it reaches the other blocks of the document, whose vectors rank alike whatever is asked: of two
    selections one holds the other.
    """
    words = sorted(set(asked(7)[0, 2:-1].tolist()))
    queries = words[:3], words[-3:]
    pooled = {"encoder_layers": 2, "pooling": "hard_topk", "pooling_lengths": "32,None", **BLOCKS}
    one, other = (kept(model(scorer="query", **pooled), asked(*query)) for query in queries)
    assert len(one - other) >= 3 and len(other - one) >= 3
    # The first block holds the query and four tokens.
    one, other = ({at for at in kept(model(**pooled), asked(*query)) if at >= 4} for query in queries)
    assert one <= other or other <= one


def test_the_query_is_among_what_the_decoder_reads() -> None:
    tokens = asked(7, 8, 9)
    with torch.no_grad():
        encoded = model(scorer="query", **POOLED).encoder(tokens, tokens.eq(PAD))
    assert encoded.sequence.query is not None and encoded.sequence.position is not None
    assert encoded.sequence.position[encoded.sequence.query.marked].tolist() == [0, 1, 2, 3]


def test_a_global_query_sees_and_is_seen_everywhere() -> None:
    window = {"self_attention": "sliding_window(window=4)", "encoder_layers": 1}
    assert reached(model(**window), asked(7, 8), 50) == [48, 49, 50, 51, 52]
    assert reached(model(**window, global_query=True), asked(7, 8), 50) == [0, 1, 2, 48, 49, 50, 51, 52]
    assert reached(model(**window, global_query=True), asked(7, 8), 1) == list(range(104))


def test_a_query_is_a_unit_of_its_own() -> None:
    of, tokens = model(pooling="markers", pooling_lengths="16,16"), asked(7, 8)
    tokens[0, 10] = MARKER
    units = of.encoder.structure_of.units(tokens, tokens.eq(PAD))
    assert units is not None and units[0].tolist() == [0] * 3 + [1] * 7 + [2] * 94
