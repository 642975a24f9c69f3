"""What a language model is made of, typed and frozen."""

from dataclasses import dataclass

from pyramidions.models.spec import LayerSpec, Part, ShapeSpec


@dataclass(frozen=True)
class ShortenedSpec:
    """An hourglass over segments.

    Attributes:
        boundaries: mark where segments end.
        segments: make one vector of each.
        inner: reads them.
    """

    boundaries: Part
    segments: Part
    inner: "HourglassSpec"


@dataclass(frozen=True)
class HourglassSpec:
    """Layers, a shortened part or None, and layers again."""

    before: tuple[LayerSpec, ...]
    shortened: ShortenedSpec | None = None
    after: tuple[LayerSpec, ...] = ()


@dataclass(frozen=True)
class LanguageModelSpec(ShapeSpec):
    """A model that only writes: an hourglass, whose layers ``stack`` composes, and an output layer."""

    hourglass: HourglassSpec
    stack: Part
    output: Part
