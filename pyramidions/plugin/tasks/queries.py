"""Checks of the queries before documents."""

from itertools import chain
from typing import Any

from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.notation import kinds_of
from pyramidions.nn.scorer import SCORER
from pyramidions.plugin.tasks.preprocessing import Preprocessing


def check_query_model(cfg: Any, preprocessing: Preprocessing) -> None:
    """Refuse a model that asks for queries where documents have none."""
    tag_dim, of = getattr(cfg, "tag_dim", 0), f"of {preprocessing.folder.path}"
    if preprocessing.has_tags and not tag_dim:
        raise UserError(f"The documents {of} have tags, so the model needs --tag-dim, such as 16, but has none.")
    if tag_dim and not preprocessing.has_tags:
        raise UserError(f"--tag-dim needs documents with tags, but those {of} have none: prepare them with --tags.")
    if preprocessing.has_queries:
        return
    names = chain(*kinds_of("scorer", getattr(cfg, "scorer", "linear")))
    reading = [f"--scorer {name}" for name in names if name in SCORER and SCORER[name].reads_query]
    if getattr(cfg, "global_query", False):
        reading.append("--global-query")
    if reading:
        raise UserError(
            f"{reading[0]} needs documents with queries, but those of {preprocessing.folder.path} have none: prepare "
            "them with --query-field."
        )


def check_folder(preprocessing: Preprocessing) -> None:
    """Refuse a data folder with queries for a model without them, and the other way round."""
    folder = preprocessing.folder
    for what, flag, has, reads in (
        ("tags", "--tags", folder.has_tags, preprocessing.has_tags),
        ("queries", "--query-field", folder.has_queries, preprocessing.has_queries),
    ):
        if has != reads:
            have, trained, how = ("have", "without", "without") if has else ("have no", "with them", "with")
            raise UserError(
                f"The documents of {folder.path} {have} {what}, but the model was trained {trained}: prepare them "
                f"{how} {flag}."
            )


def check_split(preprocessing: Preprocessing, split: str, documents: Any) -> None:
    """Refuse a split with a query that leaves too little room for its document."""
    if not preprocessing.has_queries:
        return
    eos = preprocessing.need_tokenizer().eos
    most, longest = _most(preprocessing), preprocessing.folder.manifest["splits"][split]["query_tokens"]["max"]
    if longest <= most:
        return
    index, tokens = next((i, n) for i in range(len(documents)) if (n := query_tokens(documents[i], eos)) > most)
    name = preprocessing.folder.references(split)[index].id
    raise _too_long(f"The query of the document {name!r} in the split {split!r}", tokens, preprocessing)


def check_texts(preprocessing: Preprocessing, texts: list[Tensor]) -> None:
    """Refuse texts with a query that leaves too little room for its document."""
    for number, text in enumerate(texts if preprocessing.has_queries else [], 1):
        if (tokens := query_tokens(text, preprocessing.need_tokenizer().eos)) > _most(preprocessing):
            raise _too_long(f"The query of document number {number} of those just read", tokens, preprocessing)


def query_tokens(text: Tensor, eos: int) -> int:
    """Return the number of tokens of the query that a text begins with, the end of the query included."""
    return int(text.eq(eos).int().argmax()) + 1


def _most(preprocessing: Preprocessing) -> int:
    name = "max_source_positions"
    return preprocessing.need_tokenizer().query_room(preprocessing.length(name), name)


def _too_long(query: str, tokens: int, preprocessing: Preprocessing) -> UserError:
    return UserError(
        f"{query} has {tokens:,} tokens with its end, but must have at most {_most(preprocessing):,}, half of what the "
        f"model reads: `max_source_positions` is {preprocessing.length('max_source_positions'):,}."
    )
