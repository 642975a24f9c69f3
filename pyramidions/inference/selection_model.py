"""What selects the sentences of long documents: in `summarize`, and a trained extractor in the workers of `prepare`."""

import multiprocessing
from pathlib import Path
from typing import NamedTuple

import torch

from pyramidions.base.device import Device
from pyramidions.extract import RANKERS, Ranker
from pyramidions.extract.concepts import read_ranker
from pyramidions.extract.methods import find_method
from pyramidions.files.parallel import ordered_map
from pyramidions.inference.learned_ranker import LearnedRanker
from pyramidions.inference.precision import FLOAT32
from pyramidions.pretrained.saved_model import load_extractor, weights_hash


class Selection(NamedTuple):
    """What selects the sentences of a long document."""

    method: str  # as it was given: the name of a method, or the path of a trained extractor
    ranker: Ranker  # rates the sentences


def selection(select: str | Path = "hiporank", device: Device | None = None, precision: str = FLOAT32) -> Selection:
    """Return what selects sentences."""
    found = find_method(select, "select")
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
