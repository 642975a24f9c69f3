"""What selects the sentences of long documents: in `summarize`, and a trained extractor in the workers of `prepare`."""

import multiprocessing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from pyramidions.base.device import Device
from pyramidions.extract import RANKERS, Ranker
from pyramidions.extract.concepts import read_ranker
from pyramidions.extract.methods import AUTO_METHOD, HIPORANK, find_method, suited
from pyramidions.files.parallel import ordered_map
from pyramidions.inference.learned_ranker import LearnedRanker
from pyramidions.inference.precision import FLOAT32
from pyramidions.pretrained.saved_model import load_extractor, weights_hash
from pyramidions.text.outline import Outline


class Selection(NamedTuple):
    """What selects the sentences of a long document."""

    method: str  # the name of a method, or the path of a trained extractor as it was given
    ranker: Ranker  # rates the sentences


#: Returns what selects the sentences of a document.
Selecting = Callable[[Outline], Selection]


def selecting(select: str | Path = HIPORANK, device: Device | None = None, precision: str = FLOAT32) -> Selecting:
    """Return what selects the sentences of each document: one method for all, or with "auto" the one that suits it."""
    if str(select) == AUTO_METHOD:
        return lambda outline: _known(suited(outline))
    found = selection(select, device, precision)
    return lambda outline: found


@cache
def _known(method: str) -> Selection:
    # A model of concepts takes seconds to load.
    return selection(method)


def selection(select: str | Path, device: Device | None = None, precision: str = FLOAT32) -> Selection:
    """Return what selects sentences by one method."""
    found = find_method(select, "select", AUTO_METHOD)
    if found.concepts is not None:
        return Selection(found.name, read_ranker(found.concepts))
    if found.network is not None:
        return Selection(found.name, LearnedRanker.from_pretrained(found.network, device, precision))
    return Selection(found.name, RANKERS.build(found.name, {}))


def make_ranker(path: Path) -> Ranker:
    """Read an extractor for this process; errors are those of `LearnedRanker.from_pretrained`."""
    if multiprocessing.parent_process() is not None:
        # There is a worker for each core.
        torch.set_num_threads(1)
    return LearnedRanker.from_pretrained(path, "cpu")


def fingerprint(path: Path) -> str:
    """Return a SHA-256 of an extractor's weights, tokenizer and length, whatever file they are in."""
    # Sentencepiece may crash in the fork of a process in which torch has computed. One worker would be this process.
    (found,) = ordered_map(_fingerprint, [path], workers=2)
    return found


def _fingerprint(path: Path) -> str:
    model = load_extractor(path)
    about = f"{model.config} {model.max_source_positions}".encode()
    return weights_hash(model.ranker, model.tokenizer.model_bytes + about)
