"""The splits of a data folder as fairseq's datasets."""

import logging
from typing import Any, Literal

import numpy as np
from fairseq.data import data_utils
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder, Side
from pyramidions.files.progress import counted
from pyramidions.plugin.tasks.datasets import MUCH, HeadDataset, LabelledDataset, PairDataset
from pyramidions.plugin.tasks.preprocessing import Preprocessing
from pyramidions.plugin.tasks.queries import check_folder, check_split, check_texts
from pyramidions.scoring.examples import Examples, FolderDocuments

logger = logging.getLogger(__name__)


def load_split(preprocessing: Preprocessing, split: str, *, check_hashes: bool, warn: bool) -> PairDataset:
    """Load documents and summaries, and log how much of them was truncated; with ``warn``, much of it is a warning."""
    preprocessing.need_tokenizer()
    folder, dictionary = preprocessing.folder, preprocessing.dictionary
    folder.verify(split, hashes=check_hashes)
    check_folder(preprocessing)
    documents = _heads(preprocessing, split, "source")
    check_split(preprocessing, split, documents.dataset)
    summaries = _heads(preprocessing, split, "target")
    _report(split, "documents", documents, warn)
    _report(split, "summaries", summaries, warn)
    return PairDataset(documents, summaries, dictionary, shuffle=is_shuffled(split))


def load_labelled_split(preprocessing: Preprocessing, split: str, *, check_hashes: bool, warn: bool) -> LabelledDataset:
    """Load documents, the labels of their sentences, and summaries; log how much of the documents was truncated."""
    tokenizer = preprocessing.need_tokenizer()
    folder, dictionary = preprocessing.folder, preprocessing.dictionary
    if folder.path.is_dir() and split in folder.splits and not folder.has_labels(split):
        raise no_labels(folder)
    folder.verify(split, hashes=check_hashes)
    documents = _heads(preprocessing, split, "source")
    _report(split, "documents", documents, warn)
    assert tokenizer.marker_id is not None  # labels need it
    return LabelledDataset(
        PairDataset(documents, None, dictionary, shuffle=is_shuffled(split), reads_end=False),
        indexed(preprocessing, split, "labels"),
        indexed(preprocessing, split, "target"),
        tokenizer.marker_id,
    )


def no_labels(folder: DataFolder) -> UserError:
    """Return what to raise where sentences should be labelled."""
    return UserError(f"{folder.path} has no labels of its sentences: make it with `pyramidions prepare --labels`.")


def is_shuffled(split: str) -> bool:
    return not split.startswith(("valid", "test"))


def _heads(preprocessing: Preprocessing, split: str, side: Literal["source", "target"]) -> HeadDataset:
    texts = indexed(preprocessing, split, side)
    return _cut(preprocessing, side, texts, texts.sizes)


def _cut(preprocessing: Preprocessing, side: Literal["source", "target"], texts: Any, sizes: np.ndarray) -> HeadDataset:
    tokenizer, name = preprocessing.need_tokenizer(), f"max_{side}_positions"
    longest = preprocessing.length(name)
    front = preprocessing.front if side == "source" else tokenizer.prefix
    asked = len(front) - len(tokenizer.prefix)
    if asked and longest < len(front) + 2:
        raise UserError(
            f"`{name}` must be at least {len(front) + 2}, with the {counted(asked, 'token')} of --source-prefix, a "
            f"token and the end of the text, but is {longest}."
        )
    tokenizer.room(longest, name)
    shares = side == "source" and tokenizer.document_separator_id is not None
    return HeadDataset(texts, sizes, longest, tokenizer.eos, front, tokenizer.head if shares else None)


def indexed(preprocessing: Preprocessing, split: str, side: Side) -> Any:
    """Return one side of a split: token tensors by index, with their ``sizes``."""
    return data_utils.load_indexed_dataset(preprocessing.folder.indexed(split, side), preprocessing.dictionary, "mmap")


def _report(split: str, name: str, texts: HeadDataset, warn: bool) -> None:
    flag = {"documents": "--max-source-positions", "summaries": "--max-target-positions"}[name]
    loud = texts.lost_share > MUCH and warn
    advice = f": train with a higher {flag}; the longest has {texts.longest} tokens" if loud else ""
    logger.log(logging.WARNING if loud else logging.INFO, "%s: %s: %s%s", split, name, texts.report, advice)


def examples_of(folder: DataFolder, split: str, documents: int, reads_source: bool) -> Examples:
    """Return the references of a split, with the first one in place of a prediction."""
    references = folder.references(split)
    if len(references) != documents:
        raise UserError(
            f"{folder.references_path(split)} must have {documents} summaries, one for each document, "
            f"but has {len(references)}."
        )
    texts = [reference.summary for reference in references]
    sources = FolderDocuments(folder, split) if reads_source else None
    return Examples(texts, [(text,) for text in texts], sources)


def documents_alone(preprocessing: Preprocessing, texts: list[Tensor], reads_end: bool) -> PairDataset:
    """Return documents without summaries, truncated like any other."""
    sizes = np.array([len(text) for text in texts])
    if (sizes < 2).any():
        number = int((sizes < 2).argmax()) + 1
        raise UserError(f"Every document must hold text, but number {number} of those just read is empty.")
    if preprocessing.has_tags:
        raise UserError("The model reads tags of words, which texts lack: use `prepare --tags` and fairseq-generate.")
    check_texts(preprocessing, texts)
    documents = _cut(preprocessing, "source", texts, sizes)
    if documents.lost_tokens:
        logger.warning("documents: %s", documents.report)
    return PairDataset(documents, None, preprocessing.dictionary, reads_end=reads_end)
