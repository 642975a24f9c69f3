"""The kinds of models: those that write summaries, and those that extract sentences."""

from typing import NamedTuple

from pyramidions.models import ExtractorConfig, PyramidionConfig
from pyramidions.models.config import EncoderConfig


class ModelKind(NamedTuple):
    """A kind of model.

    Attributes:
        name: as config.json of an export says.
        task: of fairseq, that trains it.
        config: has its fields.
        purpose: what it does, and how to use it, as an error says of the model ``path``.
    """

    name: str
    task: str
    config: type[EncoderConfig]
    purpose: str


SUMMARIZER = ModelKind(
    "summarizer",
    "long_document_summarization",
    PyramidionConfig,
    "writes summaries: use `pyramidions summarize {path}`, or Summarizer in Python",
)
EXTRACTOR = ModelKind(
    "extractor",
    "extractive_summarization",
    ExtractorConfig,
    "extracts sentences: use `pyramidions extract --method {path}`, or Extractor in Python",
)
KINDS = {kind.name: kind for kind in (SUMMARIZER, EXTRACTOR)}
