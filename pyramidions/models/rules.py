"""What the parts of a model need from each other, and from the text."""

from collections.abc import Iterator, Sequence

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part
from pyramidions.models.fields import check_supported
from pyramidions.models.spec import EncoderSpec, LayerSpec, ModelSpec, PoolingSpec, StageSpec
from pyramidions.nn.attention import ATTENTION, Feature
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import SCORER

#: How an error about what needs markers in the vocabulary ends.
NEEDS_MARKERS = (
    "needs a vocabulary with markers: prepare the data with --sentence-markers, or --turn-markers for turns."
)

# What attention after a pooling that biases keys must do.
_BIASED = "that adds to the scores of a key"


def marker_of_units(spec: ModelSpec, marker_idx: int | None) -> int | None:
    """Return the marker, which there must be, if a part reads units; else None: the encoder need not look for it."""
    reading = next(_readers_of_units(spec), None)
    if reading is not None and marker_idx is None:
        raise UserError(f"{reading} {NEEDS_MARKERS}")
    return None if reading is None else marker_idx


def _readers_of_units(spec: ModelSpec) -> Iterator[str]:
    """Yield what reads units, as errors call it."""
    for part in (part for layer in spec.layers for part in layer.cross_attention):
        if Feature.UNITS in ATTENTION[part.kind].supports:
            yield f"`cross_attention` {part.kind!r}"
    for layer in spec.encoder.layers:
        if layer.supports(Feature.UNITS):
            yield f"`self_attention` {layer.attention.kind!r}"
    for pooling in spec.encoder.poolings.values():
        if pooling.kind.reads_units:
            yield f"`pooling` {pooling.pooler.kind!r}"


def check_stages(stages: Sequence[StageSpec], has_marks: bool) -> None:
    """Refuse parts that need what an earlier pooling loses, or what the layer before them cannot provide."""
    # the pooling after which nobody knows what vectors are made of, and that after which there are no units to stay in
    lost = no_units = biased = None
    for stage in (inner for outer in stages for inner in outer.all_stages()):
        if any(layer.cross_attention for layer in stage.layers):
            # after an upsampling that goes on with the vectors before all poolings
            lost = no_units = biased = None
        for layer in stage.layers:
            kind, reads_units = layer.attention.kind, layer.supports(Feature.UNITS)
            if layer.recurrence is not None and reads_units:
                raise UserError(
                    f"`recurrence` must be 'none' in layers that stay inside units of the text (`self_attention` "
                    f"{kind!r}), but is {layer.recurrence.kind!r}."
                )
            if biased is not None:
                subject = f"`self_attention` after `pooling` {biased}"
                check_supported(subject, [layer.attention], Feature.KEY_BIAS, _BIASED)
            if no_units is not None and reads_units:
                raise UserError(f"`self_attention` {kind!r} must not follow {no_units}.")
            if lost is not None and has_marks and layer.supports(Feature.MARKS):
                raise UserError(
                    f"Global tokens need poolings that tell what their vectors are made of, but {lost!r} does not."
                )
        if (pooling := stage.pooling) is None:
            continue
        name = pooling.pooler.kind
        biased = name if pooling.kind.biases_keys else biased
        _check_pooling(pooling, stage.layers[-1], lost)
        if not pooling.kind.has_provenance:
            lost, no_units = name, f"`pooling` {name!r}, which loses the units of the text"
        elif pooling.kind.reads_units:
            no_units = f"`pooling` {name!r}, after which each vector is a unit of its own"


def _check_pooling(pooling: PoolingSpec, layer: LayerSpec, lost: str | None) -> None:
    name, scorer = pooling.pooler.kind, pooling.scorer
    asking = f"`pooling` {name!r}" if pooling.kind.reads_units else None
    if scorer is not None and pooling.reads_query:
        asking = f"`scorer` {scorer.kind!r}"
        if not pooling.kind.keeps_queries:
            raise UserError(
                f"{asking} needs a pooling that keeps the query's vectors, such as soft_topk, but `pooling` is "
                f"{name!r}."
            )
    if asking is not None and lost is not None:
        raise UserError(
            f"{asking} must follow poolings that tell what their vectors are made of, but follows {lost!r}."
        )
    if scorer is not None and SCORER[scorer.kind].reads_attention and not layer.supports(Feature.RECEIVED):
        raise UserError(
            f"`scorer` {scorer.kind!r} needs attention that tells what each position received, but `self_attention` is "
            f"{layer.attention.kind!r}."
        )


def check_pointer(encoder: EncoderSpec, output: str, layer: int | None) -> None:
    """Refuse an output layer that points to the memory of ``layer``, whose vectors do not tell their tokens."""
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
        if shortens and not pooling.kind.has_provenance:
            return pooling.pooler.kind
    return None


def check_read(
    encoder: EncoderSpec, decoder: str, memories: Sequence[int | None], cross: Sequence[Sequence[Part]]
) -> None:
    """Refuse a decoder that would read soft deletions as if they were none, or units that a pooling lost.

    It reads the layers ``memories`` (from 0), None for the output, by one attention a layer for each: ``cross``.
    """
    biased = {place: pooling.pooler.kind for place, pooling in encoder.poolings.items() if pooling.kind.biases_keys}
    if biased and DECODER[decoder].joins:
        kind = min(biased.items())[1]
        raise UserError(f"`pooling` {kind!r} needs a `decoder` with cross-attention, but it is {decoder!r}.")
    for memory, kinds in zip(memories, cross, strict=True):
        for kind in (kind for place, kind in biased.items() if memory is None or memory > place):
            check_supported(f"`cross_attention` after `pooling` {kind}", kinds, Feature.KEY_BIAS, _BIASED)
        reading = next((part.kind for part in kinds if Feature.UNITS in ATTENTION[part.kind].supports), None)
        if reading is not None and (lost := _loses_provenance(encoder, memory)):
            raise UserError(
                f"`cross_attention` {reading!r} must not follow `pooling` {lost!r}, which loses the units of the text."
            )
