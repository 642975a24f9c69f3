"""Sentence markers, which some parts of a model need in the vocabulary."""

from collections.abc import Iterator

from pyramidions.base.errors import UserError
from pyramidions.models.spec import EncoderSpec, FeedForwardSpec, LayerSpec, Part, StageSpec
from pyramidions.nn.attention import ATTENTION, Feature
from pyramidions.nn.pooling import POOLING

#: How an error about what needs them ends.
NEEDS_MARKERS = (
    "needs a vocabulary with markers: prepare the data with --sentence-markers, or --turn-markers for turns."
)


def marker_of_units(spec: EncoderSpec, marker_idx: int | None) -> int | None:
    """Return the marker if a part reads units; otherwise None, and the encoder does not look for it.

    Raises:
        UserError: a part reads them, but there is no marker.
    """
    reading = next(_readers(spec), None)
    if reading is not None and marker_idx is None:
        raise UserError(f"{reading} {NEEDS_MARKERS}")
    return None if reading is None else marker_idx


def _readers(spec: EncoderSpec) -> Iterator[str]:
    """Yield what reads units, as errors call it."""
    for stage in spec.all_stages():
        yield from (f"`self_attention` {kind!r}" for kind in _inside_units(stage))
        if stage.pooling is not None and POOLING[stage.pooling.pooler.kind].reads_units:
            yield f"`pooling` {stage.pooling.pooler.kind!r}"


def stays_inside_units(attention: Part) -> bool:
    """Say whether an attention kind reads units."""
    return Feature.UNITS in ATTENTION[attention.kind].supports


def _inside_units(stage: StageSpec) -> list[str]:
    kinds = (layer.self_attention.attention for layer in stage.layers)
    return [kind.kind for kind in kinds if stays_inside_units(kind)]


def check_units(stages: tuple[StageSpec, ...]) -> None:
    """Refuse attention inside units behind poolings that lose units, or hand on one vector of each.

    Raises:
        UserError: there is one.
    """
    lost = None
    for stage in (inner for outer in stages for inner in outer.all_stages()):
        for layer in stage.layers:
            _check_recurrence(layer)
        inside = _inside_units(stage)
        if lost is not None and inside:
            raise UserError(f"`self_attention` {inside[0]!r} must not follow {lost}.")
        kind = None if stage.pooling is None else stage.pooling.pooler.kind
        if kind is not None and not POOLING[kind].has_provenance:
            lost = f"`pooling` {kind!r}, which loses the units of the text"
        elif kind is not None and POOLING[kind].reads_units:
            lost = f"`pooling` {kind!r}, after which each vector is a unit of its own"


def _check_recurrence(layer: LayerSpec) -> None:
    attention = layer.self_attention.attention
    for sublayer in layer.sublayers:
        recurrence = sublayer.recurrence if isinstance(sublayer, FeedForwardSpec) else None
        if recurrence is not None and stays_inside_units(attention):
            raise UserError(
                f"`recurrence` must be 'none' in layers that stay inside units of the text (`self_attention` "
                f"{attention.kind!r}), but is {recurrence.kind!r}."
            )
