"""How probable a model finds given summaries."""

from collections.abc import Iterable

import torch

from pyramidions.data.readers import Document
from pyramidions.nn import Transformer
from pyramidions.text.tokenizer import EOS, Tokenizer


@torch.inference_mode()
def log_likelihood(
    transformer: Transformer,
    tokenizer: Tokenizer,
    documents: Iterable[Document],
    max_source_positions: int,
    max_target_positions: int,
    source_prefix: str = "",
) -> float:
    """Return the mean log-probability of a token of the summaries, in nats, their ends included.

    Args:
        transformer: in evaluation mode.
        tokenizer: of its texts.
        documents: with summaries; both are truncated to what the model reads and writes.
        max_source_positions, max_target_positions: of the model.
        source_prefix: stands before each document.

    Raises:
        ValueError: there is no document.
    """
    total, tokens = 0.0, 0
    for document in documents:
        source = truncated(tokenizer, document.source, max_source_positions, "max_source_positions", source_prefix)
        target = truncated(tokenizer, document.target, max_target_positions, "max_target_positions")
        given = torch.tensor([[EOS, *target[:-1]]])
        logits = transformer(torch.tensor([source]), given)
        log_probs = logits[0].float().log_softmax(-1)
        total += float(log_probs.gather(1, torch.tensor(target)[:, None]).sum())
        tokens += len(target)
    if not tokens:
        raise ValueError("There must be a document.")
    return total / tokens


def truncated(tokenizer: Tokenizer, text: str, most: int, name: str, before: str = "") -> list[int]:
    """Return the token ids of a text as a model reads it: framed, and ``most`` of them at most.

    Args:
        tokenizer: the model's.
        text: any.
        most: tokens, the frame included.
        name: of the argument that says ``most``, for errors.
        before: a text in front of it, which is never cut.

    Raises:
        UserError: the frame alone is longer.
    """
    front = tokenizer.encode(before)
    return tokenizer.framed(tokenizer.encode(text)[: tokenizer.room(most - len(front), name)], front)
