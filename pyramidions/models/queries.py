"""What a model does with the query before a document, and what it cannot do."""

from collections.abc import Sequence

from pyramidions.base.errors import UserError
from pyramidions.models.spec import EncoderSpec, Part
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import SCORER


def reads_query(spec: EncoderSpec) -> bool:
    """Return whether a scorer reads the query."""
    scorers = [pooling.scorer for pooling in spec.poolings.values()]
    return any(scorer is not None and SCORER[scorer.kind].reads_query for scorer in scorers)


def needs_queries(spec: EncoderSpec) -> str | None:
    """Return the field that has a meaning for documents with queries only; None if there is none."""
    if reads_query(spec):
        return "scorer"
    return "global_query" if spec.global_query else None


def check_scorers(poolers: Sequence[Part], scorers: Sequence[Part | None]) -> None:
    """Refuse a scorer that reads the query where its pooling does not keep it, or after one that lost it.

    Noise, or a softmax over all vectors, leaves next to nothing of a query's vector in what is handed on.

    Args:
        poolers: one after the other.
        scorers: that of each, or None.

    Raises:
        UserError: there is one.
    """
    lost = None
    for pooler, scorer in zip(poolers, scorers, strict=True):
        reads = scorer is not None and SCORER[scorer.kind].reads_query
        if scorer is not None and reads and not POOLING[pooler.kind].keeps_queries:
            raise UserError(
                f"`scorer` {scorer.kind!r} needs a pooling that keeps the query's vectors, such as soft_topk, but "
                f"`pooling` is {pooler.kind!r}."
            )
        if scorer is not None and reads and lost is not None:
            raise UserError(
                f"`scorer` {scorer.kind!r} must follow poolings that tell what their vectors are made of, but follows "
                f"{lost!r}."
            )
        if not POOLING[pooler.kind].has_provenance:
            lost = pooler.kind


def refuse_queries(spec: EncoderSpec) -> None:
    """Refuse what reads queries in a model whose documents have none.

    Raises:
        UserError: there is something.
    """
    if field := needs_queries(spec):
        raise UserError(f"An extractor reads no queries: `{field}` must not ask for them.")
