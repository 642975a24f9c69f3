"""What the parts of a model need from each other, and from the text."""

from collections.abc import Iterator, Sequence

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part
from pyramidions.models.fields import check_kinds
from pyramidions.models.spec import EncoderSpec, LayerSpec, ModelSpec, PoolingSpec, StageSpec
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import SCORER

#: How an error about what needs markers in the vocabulary ends.
NEEDS_MARKERS = (
    "needs a vocabulary with markers: prepare the data with --sentence-markers, or --turn-markers for turns."
)

# What attention after a pooling that biases keys must do.
_BIASED = "that adds to the scores of a key"


def reads_query(spec: EncoderSpec) -> bool:
    """Return whether a scorer reads the query."""
    return any(_reads_query(pooling) for pooling in spec.poolings.values())


def marker_of_units(spec: ModelSpec, marker_idx: int | None) -> int | None:
    """Return the marker if a part reads units; otherwise None, and the encoder does not look for it.

    Raises:
        UserError: a part reads them, but there is no marker.
    """
    reading = next(_readers_of_units(spec), None)
    if reading is not None and marker_idx is None:
        raise UserError(f"{reading} {NEEDS_MARKERS}")
    return None if reading is None else marker_idx


def _readers_of_units(spec: ModelSpec) -> Iterator[str]:
    """Yield what reads units, as errors call it."""
    for layer in spec.layers:
        yield from (
            f"`cross_attention` {part.kind!r}"
            for part in layer.cross_attention
            if Feature.UNITS in ATTENTION[part.kind].supports
        )
    for stage in spec.encoder.all_stages():
        yield from (
            f"`self_attention` {layer.attention.kind!r}" for layer in stage.layers if _has(layer, Feature.UNITS)
        )
        if stage.pooling is not None and POOLING[stage.pooling.pooler.kind].reads_units:
            yield f"`pooling` {stage.pooling.pooler.kind!r}"


def check_stages(stages: Sequence[StageSpec], has_marks: bool) -> None:
    """Refuse parts that need what an earlier pooling loses, or what the layer before them cannot provide.

    Args:
        stages: of an encoder.
        has_marks: some tokens are global.

    Raises:
        UserError: there is one.
    """
    # the pooling after which nobody knows what vectors are made of, and that after which there are no units to stay in
    lost = no_units = biased = None
    for stage in (inner for outer in stages for inner in outer.all_stages()):
        if any(layer.cross_attention for layer in stage.layers):
            # after an upsampling that goes on with the vectors before all poolings
            lost = no_units = biased = None
        for layer in stage.layers:
            _check_recurrence(layer)
            if biased is not None:
                check_kinds(
                    f"`self_attention` after `pooling` {biased}",
                    [layer.attention],
                    supporting(Feature.KEY_BIAS),
                    _BIASED,
                )
            if no_units is not None and _has(layer, Feature.UNITS):
                raise UserError(f"`self_attention` {layer.attention.kind!r} must not follow {no_units}.")
            if lost is not None and has_marks and _has(layer, Feature.MARKS):
                raise UserError(
                    f"Global tokens need poolings that tell what their vectors are made of, but {lost!r} does not."
                )
        if stage.pooling is None:
            continue
        kind = stage.pooling.pooler.kind
        biased = kind if POOLING[kind].biases_keys else biased
        _check_pooling(stage.pooling, stage.layers, lost)
        if not POOLING[kind].has_provenance:
            lost, no_units = kind, f"`pooling` {kind!r}, which loses the units of the text"
        elif POOLING[kind].reads_units:
            no_units = f"`pooling` {kind!r}, after which each vector is a unit of its own"


def _check_pooling(pooling: PoolingSpec, layers: Sequence[LayerSpec], lost: str | None) -> None:
    kind, scorer = pooling.pooler.kind, pooling.scorer
    asking = f"`pooling` {kind!r}" if POOLING[kind].reads_units else None
    if scorer is not None and _reads_query(pooling):
        asking = f"`scorer` {scorer.kind!r}"
        if not POOLING[kind].keeps_queries:
            raise UserError(
                f"{asking} needs a pooling that keeps the query's vectors, such as soft_topk, but `pooling` is "
                f"{kind!r}."
            )
    if asking is not None and lost is not None:
        raise UserError(
            f"{asking} must follow poolings that tell what their vectors are made of, but follows {lost!r}."
        )
    if scorer is not None and SCORER[scorer.kind].reads_attention and not _has(layers[-1], Feature.RECEIVED):
        raise UserError(
            f"`scorer` {scorer.kind!r} needs attention that tells what each position received, but `self_attention` is "
            f"{layers[-1].attention.kind!r}."
        )


def _check_recurrence(layer: LayerSpec) -> None:
    if layer.recurrence is not None and _has(layer, Feature.UNITS):
        raise UserError(
            f"`recurrence` must be 'none' in layers that stay inside units of the text (`self_attention` "
            f"{layer.attention.kind!r}), but is {layer.recurrence.kind!r}."
        )


def _reads_query(pooling: PoolingSpec) -> bool:
    return pooling.scorer is not None and SCORER[pooling.scorer.kind].reads_query


def _has(layer: LayerSpec, feature: Feature) -> bool:
    return feature in ATTENTION[layer.attention.kind].supports


def check_pointer(encoder: EncoderSpec, output: str, layer: int | None) -> None:
    """Refuse an output layer that points to the memory of ``layer``, whose vectors do not tell their tokens.

    Raises:
        UserError: a pooling before it has no provenance.
    """
    if lost := _loses_provenance(encoder, layer):
        possible = ", ".join(name for name in POOLING.names if POOLING[name].has_provenance)
        raise UserError(
            f"`output` {output} needs a `pooling` that tells which tokens a vector is made of ({possible}), but is "
            f"given {lost!r}."
        )


def _loses_provenance(encoder: EncoderSpec, layer: int | None) -> str | None:
    """Return the pooling after which the memory of ``layer`` does not tell what its vectors are made of, or None."""
    for place, pooling in encoder.poolings.items():
        # The output of an encoder that upsamples has the length of the document again; what is in between has not.
        shortens = pooling.upsampler is None if layer is None else place < layer
        if shortens and not POOLING[pooling.pooler.kind].has_provenance:
            return pooling.pooler.kind
    return None


def check_read(
    encoder: EncoderSpec, decoder: str, memories: Sequence[int | None], cross: Sequence[Sequence[Part]]
) -> None:
    """Refuse a decoder that would read soft deletions as if they were none, or units that a pooling lost.

    Args:
        encoder: of the model.
        decoder: the kind of decoder.
        memories: the layers (from 0) that it reads, None for the output.
        cross: by which attention it reads each memory, in each layer.

    Raises:
        UserError: the kinds do not fit.
    """
    biased = [(place, pooling.pooler.kind) for place, pooling in encoder.poolings.items()]
    biased = [(place, kind) for place, kind in biased if POOLING[kind].biases_keys]
    for place, kind in biased[:1]:
        if DECODER[decoder].joins:
            raise UserError(f"`pooling` {kind!r} needs a `decoder` with cross-attention, but it is {decoder!r}.")
        for memory, kinds in zip(memories, cross, strict=True):
            if memory is None or memory > place:
                check_kinds(f"`cross_attention` after `pooling` {kind}", kinds, supporting(Feature.KEY_BIAS), _BIASED)
    for memory, kinds in zip(memories, cross, strict=True):
        reading = next((part.kind for part in kinds if Feature.UNITS in ATTENTION[part.kind].supports), None)
        if reading is not None and (lost := _loses_provenance(encoder, memory)):
            raise UserError(
                f"`cross_attention` {reading!r} must not follow `pooling` {lost!r}, which loses the units of the text."
            )
