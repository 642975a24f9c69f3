"""Sentences that ground a summary: those that make it most probable for a language model."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

#: Rates pairs of texts: (pairs,), the mean log-likelihood in nats of the tokens of each second text, after the first.
Likelihood: TypeAlias = Callable[[Sequence[tuple[str, str]]], np.ndarray]


def grounding(sentences: Sequence[str], summary: Sequence[str], likelihood: Likelihood) -> list[int]:
    """Choose for each sentence of a summary the sentence of the document after which it is most probable.

    After Bajaj et al. 2021 ("Long Document Summarization in a Low Resource Setting using Pretrained Language Models"),
    who find what grounds a summary by the perplexity of a language model. The rule is ours: of their paper we could
    read the abstract alone. A sentence of the summary that no sentence makes more probable than nothing before it
    chooses none.

    Args:
        sentences: of the document.
        summary: its sentences.
        likelihood: of a language model.

    Returns:
        The indices of the chosen sentences, each once, in the order of the summary's sentences.
    """
    if not sentences:
        return []
    chosen: dict[int, None] = {}
    for sentence in summary:
        alone, *after = likelihood([("", sentence), *((before, sentence) for before in sentences)])
        best = int(np.argmax(after))
        if after[best] > alone:
            chosen[best] = None
    return list(chosen)
