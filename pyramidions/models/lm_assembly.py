"""From the spec of a language model to modules."""

from torch import nn

from pyramidions.models.assembly import Assembly
from pyramidions.models.lm_spec import HourglassSpec, LanguageModelSpec
from pyramidions.nn import LanguageModel
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.hourglass import Hourglass, Shortened
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.segments import SEGMENTS


def language_model(
    spec: LanguageModelSpec, embedding: nn.Embedding, padding_idx: int, space_idx: int | None
) -> LanguageModel:
    """Make a language model.

    Args:
        spec: of the whole model.
        embedding: of tokens, (V, D).
        padding_idx, space_idx: as in `build_language_model`.
    """
    parts = Assembly(spec, embedding.num_embeddings)

    def hourglass(of: HourglassSpec) -> Hourglass:
        before, shortened = [parts.layer(layer) for layer in of.before], None
        if of.shortened is not None:
            marks, pools = of.shortened.boundaries, of.shortened.segments
            shortened = Shortened(
                BOUNDARIES.build(marks.kind, marks.options, **parts.setting, space_idx=space_idx),
                SEGMENTS.build(pools.kind, pools.options, **parts.setting),
                hourglass(of.shortened.inner),
                spec.embed_dim,
            )
        return Hourglass(before, shortened, [parts.layer(layer) for layer in of.after])

    return LanguageModel(
        Embedder(embedding, scale=False, dropout=spec.dropout),
        hourglass(spec.hourglass),
        parts.stack(spec.stack),
        OUTPUT.build(spec.output.kind, spec.output.options, **parts.setting),
        parts.norm(),
        padding_idx,
    )
