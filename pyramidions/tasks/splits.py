"""The splits of a data folder as fairseq's datasets."""

import logging
from typing import Any, Literal

import numpy as np
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from pyramidions.data.folder import DataFolder
from pyramidions.data.verify import verify_split
from pyramidions.errors import UserError
from pyramidions.tasks.head_dataset import MUCH, HeadDataset
from pyramidions.tasks.pair_dataset import PairDataset
from pyramidions.tasks.preprocessing import Preprocessing
from pyramidions.tasks.validation_scores import WithReferences
from pyramidions.text.tokenizer import EOS

logger = logging.getLogger(__name__)


def load_split(
    preprocessing: Preprocessing, split: str, *, check_hashes: bool, references: bool, warn: bool
) -> PairDataset | WithReferences:
    """Load documents and summaries, and log how much of them was truncated.

    Args:
        preprocessing: where the data is, and how many tokens of a text are read.
        split: "train", "valid" or "test".
        check_hashes: read every byte, and compare with the manifest.
        references: put the raw summary of each document into the batches.
        warn: a large loss is a warning; else it is logged like any other.

    Raises:
        UserError: a file is missing or damaged, or there is not one reference for each document.
    """
    preprocessing.need_tokenizer()
    folder, dictionary = preprocessing.folder, preprocessing.dictionary
    verify_split(folder, split, hashes=check_hashes)
    longest_source, longest_target = preprocessing.max_positions
    documents = _heads(folder, split, "source", dictionary, longest_source)
    summaries = _heads(folder, split, "target", dictionary, longest_target)
    for texts, name, flag in (
        (documents, "documents", "--max-source-positions"),
        (summaries, "summaries", "--max-target-positions"),
    ):
        loud = texts.lost_share > MUCH and warn
        advice = f": train with a higher {flag}; the longest has {texts.longest} tokens" if loud else ""
        logger.log(logging.WARNING if loud else logging.INFO, "%s: %s: %s%s", split, name, texts.report, advice)
    pairs = PairDataset(documents, summaries, dictionary, shuffle=not split.startswith(("valid", "test")))
    return WithReferences(pairs, _references(folder, split, len(summaries))) if references else pairs


def _heads(
    folder: DataFolder, split: str, side: Literal["source", "target"], dictionary: Dictionary, longest: int
) -> HeadDataset:
    texts: Any = data_utils.load_indexed_dataset(folder.indexed(split, side), dictionary, "mmap")
    return HeadDataset(texts, texts.sizes, longest, EOS)


def _references(folder: DataFolder, split: str, documents: int) -> list[str]:
    references = folder.references(split)
    if len(references) != documents:
        raise UserError(
            f"{folder.references_path(split)} must have {documents} summaries, one for each document, "
            f"but has {len(references)}."
        )
    return [reference.summary for reference in references]


def documents_alone(preprocessing: Preprocessing, texts: list[Tensor]) -> PairDataset:
    """Return documents without summaries, truncated like any other.

    Args:
        preprocessing: how many tokens of a text are read.
        texts: token ids of each document, the end of the text included.

    Raises:
        UserError: a document is empty.
    """
    sizes = np.array([len(text) for text in texts])
    longest = preprocessing.max_positions[0]
    if (sizes < 2).any():
        number = int((sizes < 2).argmax()) + 1
        raise UserError(f"Every document must hold text, but number {number} of those just read is empty.")
    documents = HeadDataset(texts, sizes, longest, EOS)
    if (sizes > longest).any():
        logger.warning("documents: %s", documents.report)
    return PairDataset(documents, None, preprocessing.dictionary)
