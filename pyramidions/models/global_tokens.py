"""Parses what a config says of global tokens, and refuses what nobody would read."""

from pyramidions.base.errors import UserError
from pyramidions.models.fields import FieldReader
from pyramidions.models.spec import Part, StageSpec
from pyramidions.nn.attention import ATTENTION, Feature
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.projections import PROJECTIONS


def reads_marks(attention: Part) -> bool:
    """Say whether an attention kind knows global tokens."""
    return Feature.MARKS in ATTENTION[attention.kind].supports


def global_projections(reader: FieldReader, attention: list[Part]) -> Part | None:
    """Return the projections of what global tokens see; refuse what nothing would read."""
    config = reader.config
    own = reader.one_or_none("global_projections", PROJECTIONS)
    given = {name: getattr(config, name) for name in ("global_tokens", "global_markers", "global_query")}
    for name, value in given.items():
        if value and not any(map(reads_marks, attention)):
            kinds = " or ".join(name for name in ATTENTION.names if reads_marks(Part(name)))
            raise UserError(f"`{name}` needs `self_attention` {kinds}, but it is {config.self_attention!r}.")
    if own is not None and not any(given.values()):
        raise UserError(
            f"`global_projections` is {own.kind!r}, but no token is global: give `global_tokens`, `global_markers` or "
            "`global_query`."
        )
    return own


def check_poolings(stages: tuple[StageSpec, ...]) -> None:
    """Refuse poolings after which nobody knows which vectors are global, if a later layer asks."""
    lost = None
    for stage in (inner for outer in stages for inner in outer.all_stages()):
        if lost is not None and any(reads_marks(layer.self_attention.attention) for layer in stage.layers):
            raise UserError(
                f"Global tokens need poolings that tell what their vectors are made of, but {lost!r} does not."
            )
        if stage.pooling is not None and not POOLING[stage.pooling.pooler.kind].has_provenance:
            lost = stage.pooling.pooler.kind
