"""Entities of summaries in their documents (Nan et al., "Entity-level Factual Consistency", 2021)."""

from collections.abc import Sequence
from typing import ClassVar

from pyramidions.scoring.entity_metric import EntityMetric
from pyramidions.scoring.metric import METRICS, Figure
from pyramidions.scoring.reading import Tags
from pyramidions.text.language import Language


class Entities(EntityMetric):
    """Precision and recall of the entities that a tagger finds; see `EntityMetric`.

    Args:
        tags: finds them.
        language: as in `Language`; decides where sentences end.
    """

    name: ClassVar = "entities"
    counted: ClassVar = "entity"
    figures: ClassVar = {
        "entity_precision": Figure("entity precision"),
        "entity_precision_whole": Figure("whole-entity precision"),
        "entity_recall": Figure("entity recall"),
    }

    def __init__(self, tags: Tags, language: str = "en") -> None:
        super().__init__()
        self._language = Language(language)
        self._tags = tags

    def names(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the entities in texts, sentence by sentence."""
        cut = [self._language.sentences(text) for text in texts]
        spans = iter(self._tags.entities([sentence for sentences in cut for sentence in sentences]))
        return [
            [sentence[span.start : span.end] for sentence in sentences for span in next(spans)] for sentences in cut
        ]

    def signature(self) -> str:
        """Name the model and what counts as found."""
        return f"entities | {self._tags.signature()} | found if a word of it is; whole: word by word | any case"


@METRICS.register("entities")
def entities(tagger: str | None = None, device: str = "cpu", language: str = "en") -> Entities:
    """Load the tagger."""
    # torch takes seconds to import: only when it is needed.
    from pyramidions.scoring.encoders.entity_tagger import EntityTagger

    return Entities(EntityTagger.of(tagger, device), language)
