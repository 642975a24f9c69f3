"""A trained extractor that selects the sentences of documents in the worker processes of `prepare`."""

import hashlib
import multiprocessing
from pathlib import Path

import torch

from pyramidions.extract import Ranker
from pyramidions.files.parallel import ordered_map
from pyramidions.inference.learned_ranker import LearnedRanker
from pyramidions.inference.saved_model import load_extractor


def make_ranker(path: Path) -> Ranker:
    """Read an extractor for this process; errors are those of `LearnedRanker.from_pretrained`."""
    if multiprocessing.parent_process() is not None:
        # There is a worker for each core.
        torch.set_num_threads(1)
    return LearnedRanker.from_pretrained(path, "cpu")


def fingerprint(path: Path) -> str:
    """Return a SHA-256 of an extractor's weights, tokenizer and length, whatever file they are in.

    It is read in another process: sentencepiece may crash in the fork of a process in which torch has computed.

    Raises:
        UserError: there is no extractor.
    """
    # One worker would be this process.
    (found,) = ordered_map(_fingerprint, [path], workers=2)
    return found


def _fingerprint(path: Path) -> str:
    model = load_extractor(path)
    digest = hashlib.sha256(model.tokenizer.model_bytes)
    digest.update(f"{model.config} {model.max_source_positions}".encode())
    for name, weight in sorted(model.ranker.state_dict().items()):
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()
