"""What a metric may need a pretrained model for."""

from typing import NamedTuple


class Head(NamedTuple):
    """A use of a pretrained encoder.

    Attributes:
        option: of `MetricOptions` that names the model.
        meaning: what such a model is, with its article.
        loader: the class of transformers that loads it.
        suffix: of the names of its architectures; "" where any encoder will do.
    """

    option: str
    meaning: str
    loader: str
    suffix: str = ""

    @property
    def is_encoder(self) -> bool:
        """Whether it is the vectors of tokens that are used."""
        return not self.suffix


VECTORS = Head("embedding_model", "an encoder, such as BERT or the encoder of BART", "AutoModel")
ANSWERS = Head(
    "qa_model",
    "an extractive question-answering model",
    "AutoModelForQuestionAnswering",
    "ForQuestionAnswering",
)
ENTITY_LABELS = Head(
    "tagger", "a token classifier that finds entities", "AutoModelForTokenClassification", "ForTokenClassification"
)
