"""`prepare --label-model`: which sentences a language model finds that a summary rests on."""

import multiprocessing
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from pyramidions.data.labels import LabelModel
from pyramidions.extract.grounding import Likelihood, grounding
from pyramidions.files.hub import fetch, hub_name
from pyramidions.files.parallel import ordered_map
from pyramidions.text.language import Language


def label_model(place: str) -> LabelModel:
    """Return what labels sentences by a language model of characters, or of transformers.

    It is read in another process: sentencepiece may crash in the fork of a process in which torch has computed.

    Raises:
        UserError: there is no such model.
    """
    # One worker would be this process.
    (name,) = ordered_map(_name, [place], workers=2)
    return LabelModel(name, partial(_choose, place))


def _choose(place: str, sentences: Sequence[str], reference: str, language: str) -> list[int]:
    likelihood, _ = _loaded(place)
    return grounding(sentences, Language(language).sentences(reference), likelihood)


def _name(place: str) -> str:
    _, name = _loaded(place)
    return name


@cache
def _loaded(place: str) -> tuple[Likelihood, str]:
    """Return a model for this process, and its name."""
    import torch

    from pyramidions.inference.export_folder import CONFIG, family_of

    if multiprocessing.parent_process() is not None:
        # There is a worker for each core.
        torch.set_num_threads(1)
    on_hub = hub_name(place)
    folder = Path(place) if on_hub is None else fetch(on_hub, [CONFIG]).path
    if family_of(folder / CONFIG) is None:
        from pyramidions.inference.character_likelihood import CharacterLikelihood

        characters = CharacterLikelihood.from_pretrained(place)
        return characters, characters.name
    from pyramidions.scoring.encoders.raters import ContinuationRater

    rater = ContinuationRater.of(place, "cpu")
    return lambda pairs: rater.rated(pairs).values, rater.name
