"""Models that read units of a text: turns that depend on no other, and two levels of layers (tiny HAT and HMNet)."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from reading import END, MARKER, PAD, memory, small
from torch import Tensor

from pyramidions.nn import Transformer
from pyramidions.plugin.models.architectures import index_of
from pyramidions.text.tokenizer import MARKERS

SEGMENTS = {"self_attention": "segments(segment_length=5) | segments(segment_length=5)"}
# The decoder reads what comes before the pooling, too.
NUMBERED = {"memories": "2,last", "pooling": "markers(numbers=True)", "pooling_lengths": "None,64"}
TURNS = [[7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18], [19], [20, 21, 22, 23]]


def model(**overrides: Any) -> Transformer:
    return small(**{**SEGMENTS, **overrides})


def text(*turns: list[int]) -> Tensor:
    joined = [token for number, turn in enumerate(turns) for token in ([MARKER] if number else []) + turn]
    return torch.tensor([[*joined, END]])


def of_turns(of: Transformer, tokens: Tensor) -> list[Tensor]:
    """Return the vectors of each turn (L, D)."""
    padding_mask = tokens.eq(PAD)
    x, units = of.encoder(tokens, padding_mask).memories[0].x, of.encoder.structure_of.units(tokens, padding_mask)
    assert units is not None
    return [x[units == number] for number in range(int(units.max()) + 1)]


@pytest.mark.parametrize(
    ("positions", "changed", "new"),
    [
        ("sinusoidal", 0, [30]),
        ("sinusoidal", 3, [30, 31, 32]),
        ("learned", 1, [30]),
        ("learned", 2, [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 39, 39]),
    ],
)
@torch.no_grad()
def test_vectors_of_a_turn_depend_on_no_other_turn_nor_on_its_length(
    positions: str, changed: int, new: list[int]
) -> None:
    whole = model(encoder_positions=positions, **NUMBERED)
    before = of_turns(whole, text(*TURNS))
    after = of_turns(whole, text(*TURNS[:changed], new, *TURNS[changed + 1 :]))
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        if number == changed:
            assert one.shape != other.shape or not torch.allclose(one, other, atol=1e-3)
        else:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("fields", [{}, NUMBERED], ids=["unnumbered", "numbered"])
@torch.no_grad()
def test_the_order_of_turns_is_never_lost(fields: dict[str, Any]) -> None:
    whole, prefix = model(**fields), torch.tensor([[END, 5]])
    swapped = [TURNS[1], TURNS[0], *TURNS[2:]]
    assert not torch.allclose(whole(text(*TURNS), prefix), whole(text(*swapped), prefix), rtol=0, atol=1e-3)


@torch.no_grad()
def test_turns_beyond_what_a_pooling_kept_are_numbered_by_their_place_in_it() -> None:
    turns = [[7 + number % 20] for number in range(600)]
    fields = {"pooling": "soft_topk | markers(numbers=True)", "pooling_lengths": "40,30"}
    assert memory(model(**fields), text(*turns)).isfinite().all()


@torch.no_grad()
def test_behind_layers_that_see_all_positions_count_from_the_start_of_the_document() -> None:
    whole = model(self_attention="full | segments(segment_length=5)")
    x = whole.encoder.embedder(text(*TURNS))
    read: list[Tensor] = []
    whole.encoder.layers[0].register_forward_pre_hook(lambda layer, given: read.append(given[0]))
    whole.encoder(text(*TURNS), torch.zeros(1, len(text(*TURNS)[0]), dtype=torch.bool))
    assert read[0].equal(x)


@torch.no_grad()
def test_a_pooled_vector_attends_in_the_unit_of_its_strongest_member() -> None:
    whole = model(pooling="hard_topk", scorer="index", pooling_lengths="32,None")
    tokens = text([9, 9, 9], [10, 11], [12, 13, 14])
    found = whole.encoder(tokens, tokens.eq(PAD)).sequence
    other = text([9, 9, 9], [30, 31], [12, 13, 14])
    after = whole.encoder(other, other.eq(PAD)).sequence
    assert found.unit is not None and after.unit is not None
    for number in (0, 2):
        torch.testing.assert_close(found.x[found.unit == number], after.x[after.unit == number])


@pytest.mark.parametrize(("pieces", "marker"), [(["<n>"], 4), (["a", "<t>"], 5), (["a"], None)])
def test_sentences_and_turns_have_markers_of_their_own(pieces: list[str], marker: int | None) -> None:
    words = Dictionary()
    for piece in pieces:
        words.add_symbol(piece)
    assert index_of(words, *MARKERS) == marker


def documents() -> Tensor:
    """Two meetings, of five turns and of one."""
    first, second = torch.arange(5, 38), torch.arange(9, 20)
    first[[6, 13, 14, 27]] = MARKER
    return torch.stack([first, F.pad(second, (0, 22), value=PAD)])


@pytest.mark.parametrize("name", ["hat", "hmnet"])
def test_the_decoder_reads_tokens_first_then_units(name: str) -> None:
    tokens = documents()
    words, units = small(name, decoder_layers=2).encoder(tokens, tokens.eq(PAD)).memories
    assert words.x.shape == (2, 33, 16) and units.x.shape == (2, 5, 16)
    assert units.padding_mask is not None and units.padding_mask.sum(dim=1).tolist() == [0, 4]
