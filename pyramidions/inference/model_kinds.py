"""The kinds of models: those that write summaries, extract sentences, or predict characters."""

from typing import NamedTuple

from pyramidions.data.folder import CHARACTERS
from pyramidions.models import ExtractorConfig, LanguageModelConfig, PyramidionConfig
from pyramidions.models.config import EncoderConfig


class ModelKind(NamedTuple):
    """A kind of model.

    Attributes:
        name: as config.json of an export says.
        task: fairseq's name of the task that trains it.
        config: has its fields.
        vocabulary: the key of what a checkpoint's task says about its tokens.
        purpose: what it does, and how to use it, as an error says of the model ``path``.
    """

    name: str
    task: str
    config: type[EncoderConfig] | type[LanguageModelConfig]
    vocabulary: str
    purpose: str


SUMMARIZER = ModelKind(
    "summarizer",
    "long_document_summarization",
    PyramidionConfig,
    "tokenizer",
    "writes summaries: use `pyramidions summarize {path}`, or Summarizer in Python",
)
EXTRACTOR = ModelKind(
    "extractor",
    "extractive_summarization",
    ExtractorConfig,
    "tokenizer",
    "extracts sentences: use `pyramidions extract --method {path}`, or Extractor in Python",
)
LANGUAGE_MODEL = ModelKind(
    "language model",
    "character_language_modeling",
    LanguageModelConfig,
    CHARACTERS,
    "predicts characters: use `pyramidions segments {path}`, or Segmenter in Python",
)
#: All by name.
KINDS = {kind.name: kind for kind in (SUMMARIZER, EXTRACTOR, LANGUAGE_MODEL)}
