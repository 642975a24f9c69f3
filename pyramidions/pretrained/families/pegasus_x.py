"""PEGASUS-X."""

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, written
from pyramidions.models import PyramidionConfig
from pyramidions.pretrained.families.bart import Bart
from pyramidions.pretrained.families.family import FAMILIES, Settings, Shape, parts_of
from pyramidions.pretrained.names import LOGITS_BIAS
from pyramidions.pretrained.source import Source


@dataclass(frozen=True)
class PegasusX(Bart):
    """PEGASUS-X (Phang et al. 2022): staggered blocks and learned vectors that all tokens see, over 16,384 tokens.

    No projection has a bias. No table of positions ends.
    """

    name: str = "pegasus_x"
    class_name: str = "PegasusX"
    tokenizer_class: str = "PegasusTokenizer"
    normalize_before: bool = True
    normalizes_embeddings: bool = False
    learns_positions: bool = False

    def shape(self, source: Source) -> Shape:
        read, shape = Settings(source), super().shape(source)
        block_size, staggered = read.one("block_size", int, 512), read.one("stagger_local_blocks", bool, True)
        if staggered and block_size % 2:
            raise UserError(
                f"`block_size` in the config of {source.path} must be even where blocks are staggered, but is "
                f"{block_size}."
            )
        attention = {"block_size": block_size, **({} if staggered else {"staggered": False})}
        positions = written(Part("sinusoidal", {"first": 0, "frequencies": "fairseq"}))
        projections = written(Part("dense", {"bias": False}))
        config = shape.config.replace(
            self_attention=written(Part("block_global", attention)),
            global_vectors=read.one("num_global_tokens", int, 32),
            encoder_positions=positions,
            decoder_positions=positions,
            **{f"{name}_projections": projections for name in ("encoder", "decoder", "cross")},
        )
        return replace(shape, config=config)

    def config_json(self, config: PyramidionConfig, lengths: tuple[int, int]) -> dict[str, Any]:
        options = parts_of(config, "self_attention")[0].options
        return {
            **super().config_json(config, lengths),
            "block_size": options.get("block_size", 512),
            "stagger_local_blocks": options.get("staggered", True),
            "num_global_tokens": config.global_vectors,
        }

    def state_dict(
        self, own: dict[str, Tensor], config: PyramidionConfig, lengths: tuple[int, int]
    ) -> dict[str, Tensor]:
        found = super().state_dict(own, config, lengths)
        del found[LOGITS_BIAS]
        return found

    def _tables(self, own: dict[str, Tensor], lengths: tuple[int, int]) -> dict[str, Tensor]:
        return {}


FAMILIES["pegasus_x"] = PegasusX()
