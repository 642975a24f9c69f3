"""The kinds of models: those that write summaries, extract sentences, or predict characters."""

from typing import TYPE_CHECKING, NamedTuple

from pyramidions.data.folder import CHARACTERS

# What lies in a folder can be told without torch, too.
if TYPE_CHECKING:
    from pyramidions.models import LanguageModelConfig
    from pyramidions.models.config import EncoderConfig


class ModelKind(NamedTuple):
    """A kind of model."""

    name: str  # as config.json of an export says
    task: str  # fairseq's name of the task that trains it
    config_name: str  # of the class in `pyramidions.models` that has its fields
    vocabulary: str  # the key of what a checkpoint's task says about its tokens
    purpose: str  # what it does, and how to use it, as an error says of the model ``path``

    @property
    def config(self) -> "type[EncoderConfig] | type[LanguageModelConfig]":
        """The class that has its fields."""
        import pyramidions.models as models

        return getattr(models, self.config_name)


SUMMARIZER = ModelKind(
    "summarizer",
    "long_document_summarization",
    "PyramidionConfig",
    "tokenizer",
    "writes summaries: use `pyramidions summarize {path}`, or Summarizer in Python",
)
EXTRACTOR = ModelKind(
    "extractor",
    "extractive_summarization",
    "ExtractorConfig",
    "tokenizer",
    "extracts sentences: use `pyramidions extract --method {path}`, or Extractor in Python",
)
LANGUAGE_MODEL = ModelKind(
    "language model",
    "character_language_modeling",
    "LanguageModelConfig",
    CHARACTERS,
    "predicts characters: use `pyramidions segments {path}`, or Segmenter in Python",
)
#: All by name.
KINDS = {kind.name: kind for kind in (SUMMARIZER, EXTRACTOR, LANGUAGE_MODEL)}
