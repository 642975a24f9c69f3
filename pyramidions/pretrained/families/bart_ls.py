"""BART-LS, as fairseq's fork published it."""

from dataclasses import dataclass, replace

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, written_parts
from pyramidions.pretrained.families.bart import Bart
from pyramidions.pretrained.families.family import FAMILIES, Settings, Shape
from pyramidions.pretrained.source import Source


@dataclass(frozen=True)
class BartLs(Bart):
    """BART-LS (Xiong et al. 2022): blocks in the encoder, whose last layers also read averages over the document."""

    name: str = "bart_ls"
    class_name: str = "BartLs"
    unused_positions: int = 2

    def shape(self, source: Source) -> Shape:
        read, shape = Settings(source), super().shape(source)
        read.must_be("attention_name", "block_noglobal")
        block_size, pooled = read.one("block_size", int), read.one("pooling_layers", int, 0)
        layers = shape.config.encoder_layers
        if not 0 <= pooled <= layers:
            raise UserError(
                f"`pooling_layers` of {source.path} must be from 0 to the {layers} encoder layers, but is {pooled}."
            )
        kinds = [Part("blockwise", {"block_size": block_size})] * (layers - pooled)
        kinds += [Part("pooled_blockwise", {"block_size": block_size})] * pooled
        attention = written_parts([kinds[:1] if 0 in (pooled, layers - pooled) else kinds])
        return replace(shape, config=shape.config.replace(self_attention=attention))


FAMILIES["bart_ls"] = BartLs()
