"""Cuts the layers of a config into stages: what pools after which layer, and what the decoder reads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pyramidions.base.arguments import check, shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, lengths_in
from pyramidions.models.config import LONGEST_TEXT, MAX_SOURCE_POSITIONS, EncoderConfig
from pyramidions.models.fields import FieldReader
from pyramidions.models.spec import LayerSpec, PoolingSpec, StageSpec
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.stack import STACK
from pyramidions.nn.upsampling import UPSAMPLING

_DIGITS = len(str(LONGEST_TEXT))


def parse_pooling_lengths(text: str | None, layers: int) -> dict[int, int]:
    """Return the pooled length after each layer that pools, by the layer's number (from 0)."""
    entries = [] if text is None else lengths_in(text)
    if text is not None and len(entries) != layers:
        raise UserError(
            f"`pooling_lengths` must have one entry per encoder layer, but has {len(entries)} for {layers}: "
            f"{shown(text)}."
        )
    lengths: dict[int, int] = {}
    for layer, entry in enumerate(entries):
        if entry == "None":
            continue
        if not entry.isdecimal() or len(entry) > _DIGITS or not 1 <= int(entry) <= LONGEST_TEXT:
            raise UserError(
                f"`pooling_lengths` must be positive integers up to {LONGEST_TEXT:,} or None, "
                f"but layer {layer + 1} has {shown(entry)}."
            )
        last = min(lengths.values(), default=LONGEST_TEXT)
        if int(entry) > last:
            raise UserError(f"`pooling_lengths` must not grow, but layer {layer + 1} hands on {entry} after {last}.")
        lengths[layer] = int(entry)
    return lengths


def stages_of(reader: FieldReader, layers: list[LayerSpec], read: Sequence[int] = ()) -> tuple[StageSpec, ...]:
    """Cut ``layers`` at poolings, and after those that are read; a stage with upsampling holds all later stages.

    Layers that read what was pooled come after the upsampling. The decoder reads the output of the layers ``read``, by
    their numbers (from 0).
    """
    config = reader.config
    longest = config.max_source_positions or MAX_SOURCE_POSITIONS
    lengths = parse_pooling_lengths(config.pooling_lengths, len(layers))
    _check_read(reader, read, lengths)
    if not lengths:
        _refuse_unused(reader)
        return _cut(layers, 0, longest, read)
    poolers = reader.each("pooling", len(lengths), "pooling")
    upsampler = _upsampler(reader, poolers)
    parts = dict(zip(lengths, zip(poolers, _scorers(reader, poolers), strict=True), strict=True))
    is_read = upsampler is not None and UPSAMPLING[upsampler.kind].is_read
    layers, last_layers = _reading(layers, upsampler, max(lengths)) if is_read and upsampler else (layers, [])

    def stages(start: int, longest: int, upsampler: Part | None) -> tuple[StageSpec, ...]:
        last = next((layer for layer in lengths if layer >= start), None)
        if last is None:
            return _cut(layers[start:], start, longest, read)
        after, owned, (pooler, scorer) = last + 1, None, parts[last]
        if POOLING[pooler.kind].takes_layer:
            _check_owned(config, lengths, layers[after:], pooler)
            if after in read:
                raise UserError(f"`memories` must not name layer {after + 1}, which {pooler.kind} pooling runs.")
            owned = layers[after]
            after += 1
        window, length = -(-longest // lengths[last]), min(longest, lengths[last])
        pooling = PoolingSpec(pooler, lengths[last], window, scorer, owned, upsampler)
        *earlier, own = _cut(layers[start : last + 1], start, longest, read)
        rest = stages(after, length, None if is_read else upsampler)
        if upsampler is None:
            return (*earlier, replace(own, pooling=pooling), *rest)
        if not rest and owned is None:
            raise UserError(
                f"`upsampling` {upsampler.kind!r} needs a layer after the last pooling, but `pooling_lengths` is "
                f"{config.pooling_lengths!r}."
            )
        return (*earlier, replace(own, pooling=pooling, inner=rest))

    return (*stages(0, longest, upsampler), *_cut(last_layers, len(layers), longest, read))


def _cut(layers: Sequence[LayerSpec], start: int, longest: int, read: Sequence[int]) -> tuple[StageSpec, ...]:
    """Cut layers with no pooling in between after those that are read; the first has the number ``start``."""
    ends = sorted({start + len(layers), *(layer + 1 for layer in read if start <= layer < start + len(layers))})
    return tuple(
        StageSpec(tuple(layers[begin - start : end - start]), longest, is_memory=end - 1 in read)
        for begin, end in pairwise([start, *ends])
        if begin < end
    )


def _check_read(reader: FieldReader, read: Sequence[int], lengths: Mapping[int, int]) -> None:
    """Refuse to read what stacks of several streams have in the middle: it is none of the streams, nor their mean."""
    stack = reader.one("stack").kind
    for layer in read:
        if STACK[stack].streams > 1 and layer not in lengths:
            raise UserError(
                f"`memories` must name layers that a pooling follows if `stack` is {stack!r}, but names {layer + 1}."
            )


def _scorers(reader: FieldReader, poolers: list[Part]) -> list[Part | None]:
    """Return the scorer of each pooling, None if its kind takes none."""
    config, usual = reader.config, EncoderConfig.scorer
    asking = [POOLING[pooler.kind].takes_scorer for pooler in poolers]
    if not any(asking) and config.scorer != usual:
        raise UserError(f"`scorer` is {config.scorer!r}, but `pooling` {config.pooling!r} takes no scorer.")
    scorers = reader.each("scorer", len(poolers), "pooling")
    for pooler, scorer, asks in zip(poolers, scorers, asking, strict=True):
        # One scorer for all is that of the poolings which take one.
        if not asks and scorer not in (scorers[asking.index(True)] if any(asking) else scorer, Part(usual)):
            raise UserError(
                f"`scorer` is {config.scorer!r}, but `pooling` {pooler.kind!r} takes no scorer: give it {usual}, "
                "without options."
            )
    return [scorer if asks else None for scorer, asks in zip(scorers, asking, strict=True)]


def _upsampler(reader: FieldReader, poolers: list[Part]) -> Part | None:
    config = reader.config
    if config.upsampling is None:
        kinds = {POOLING[pooler.kind].upsampling for pooler in poolers}
        if len(kinds) > 1:
            raise UserError(
                f"`upsampling` must be given, because the kinds of `pooling` {config.pooling!r} differ in it."
            )
        (kind,) = kinds
        return None if kind is None else Part(kind)
    upsampler = reader.one_or_none("upsampling")
    for pooler in poolers:
        if upsampler is not None and UPSAMPLING[upsampler.kind].takes_window > POOLING[pooler.kind].takes_window:
            raise UserError(
                f"`upsampling` {upsampler.kind!r} needs pooling over windows, but `pooling` is {pooler.kind!r}."
            )
    return upsampler


def _reading(layers: list[LayerSpec], upsampler: Part, last: int) -> tuple[list[LayerSpec], list[LayerSpec]]:
    """Return the layers before an upsampling, and those after it, with the cross-attention by which they read it."""
    given = UPSAMPLING.arguments(upsampler.kind)["layers"]
    count = upsampler.options.get("layers", given.default)
    check({"layers": count}, {"layers": given.annotation})
    before = len(layers) - count
    if last >= before - 1:
        raise UserError(
            f"`upsampling` {upsampler.kind!r} needs a layer between the last pooling and the last {count} encoder "
            f"layers, but layer {last + 1} of {len(layers)} pools."
        )
    return layers[:before], [replace(layer, cross_attention=(Part("full"),)) for layer in layers[before:]]


def _check_owned(config: EncoderConfig, lengths: dict[int, int], after: list[LayerSpec], pooler: Part) -> None:
    if len(lengths) != 1 or not after:
        raise UserError(
            f"`pooling_lengths` of {pooler.kind} pooling must name one length, after a layer that another one follows, "
            f"but is {config.pooling_lengths!r}."
        )
    kind = after[0].attention.kind
    if Feature.ACROSS not in ATTENTION[kind].supports:
        names = " or ".join(supporting(Feature.ACROSS))
        raise UserError(f"{pooler.kind.capitalize()} pooling needs `self_attention` {names}, but it is {kind!r}.")


def _refuse_unused(reader: FieldReader) -> None:
    """Refuse options of pooling if nothing is pooled; names of kinds are checked all the same."""
    config = reader.config
    unused = {
        "pooling": bool(reader.each("pooling", 1, "pooling")[0].options),
        "scorer": bool(reader.each("scorer", 1, "pooling")[0].options),
        "upsampling": config.upsampling not in (None, NONE),
    }
    for name in (name for name, is_set in unused.items() if is_set):
        raise UserError(
            f"`{name}` is {getattr(config, name)!r}, but nothing is pooled: "
            f"`pooling_lengths` is {config.pooling_lengths}."
        )
