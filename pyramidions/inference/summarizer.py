"""Summaries of texts, in a few lines of Python."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from pyramidions.data.tokenizer import EOS, PAD
from pyramidions.errors import UserError
from pyramidions.inference.saved_model import SavedModel, load_model
from pyramidions.nn import BeamSearch


class Summary(NamedTuple):
    """A summary, and what it is a summary of.

    Attributes:
        text: on one line.
        score: sum of its tokens' log-probabilities / tokens ** length penalty.
        tokens: of the summary, its end included.
        document_tokens: of the whole document, its end included.
        read_tokens: how many of those the model read; the rest, at the end, was cut off.
    """

    text: str
    score: float
    tokens: int
    document_tokens: int
    read_tokens: int

    @property
    def was_cut(self) -> bool:
        """Whether the document was longer than the model reads."""
        return self.read_tokens < self.document_tokens


class Summarizer:
    """Writes summaries of long documents.

    >>> from pyramidions.inference import Summarizer
    >>> summarizer = Summarizer.from_pretrained("checkpoints")      # doctest: +SKIP
    >>> summarizer.summarize(["A long paper ...", "Another ..."])   # doctest: +SKIP

    Args:
        model: a trained model.
        device: where it computes, such as "cpu" or "cuda:1"; a GPU if there is one, if None.
    """

    def __init__(self, model: SavedModel, device: str | torch.device | None = None) -> None:
        self.model = model
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._transformer = model.transformer.to(self.device).eval()

    @classmethod
    def from_pretrained(cls, path: str | Path, device: str | torch.device | None = None) -> "Summarizer":
        """Read a checkpoint, a folder of checkpoints (the best is taken), or an exported model.

        Raises:
            UserError: there is none, or it is damaged.
        """
        return cls(load_model(path), device)

    @torch.inference_mode()
    def summarize(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        min_len: int | None = None,
        max_len: int | None = None,
        length_penalty: float | None = None,
        no_repeat_ngram: int = 0,
        batch_size: int = 8,
    ) -> list[Summary]:
        """Summarize documents.

        What is None is as the model was made to decode. Documents of like length are read together.

        Args:
            texts: the documents; each must hold text.
            beam: hypotheses of a document.
            min_len: fewest tokens of a summary, without its end.
            max_len: most tokens of a summary, without its end; at most as many as the model writes.
            length_penalty: above 1 favours long summaries.
            no_repeat_ngram: n of the n-grams that a summary holds once at most; 0 allows all.
            batch_size: documents that are read at once.

        Returns:
            The summaries, in the order of ``texts``.

        Raises:
            ValueError: an argument that breaks a rule.
            UserError: a document without text.
        """
        if isinstance(texts, str):
            raise UserError("`texts` must be a list of documents, but is a single text: put it in brackets.")
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1, but is {batch_size}.")
        search = self._search(beam, min_len, max_len, length_penalty, no_repeat_ngram)
        documents = [self._tokens(number, text) for number, text in enumerate(texts, 1)]
        longest_first = sorted(range(len(documents)), key=lambda index: -len(documents[index]))
        found: dict[int, Summary] = {}
        for start in range(0, len(documents), batch_size):
            batch = longest_first[start : start + batch_size]
            found.update(zip(batch, self._summaries([documents[index] for index in batch], search), strict=True))
        return [found[index] for index in range(len(documents))]

    def _search(
        self,
        beam: int | None,
        min_len: int | None,
        max_len: int | None,
        length_penalty: float | None,
        no_repeat_ngram: int,
    ) -> BeamSearch:
        config = self.model.config
        # One position is the end of the text.
        longest = self.model.max_target_positions - 1
        if max_len is not None and max_len > longest:
            raise ValueError(f"`max_len` must be at most {longest}, what the model writes, but is {max_len}.")
        most = min(longest, config.decoding_max_length if max_len is None else max_len)
        least = config.decoding_min_length if min_len is None else min_len
        return BeamSearch(
            config.decoding_beam if beam is None else beam,
            # A shorter limit that the user sets leaves no room for the model's own least length.
            min(least, most) if min_len is None else least,
            most,
            config.decoding_length_penalty if length_penalty is None else length_penalty,
            no_repeat_ngram,
            eos=EOS,
            best=1,
        )

    def _tokens(self, number: int, text: str) -> list[int]:
        tokens = self.model.tokenizer.encode(text)
        if not tokens:
            raise UserError(f"Every document must hold text, but number {number} holds none.")
        return [*tokens, EOS]

    def _summaries(self, documents: list[list[int]], search: BeamSearch) -> Iterator[Summary]:
        most = self.model.max_source_positions
        # The head is kept, and ends as a text ends.
        heads = [tokens if len(tokens) <= most else [*tokens[: most - 1], EOS] for tokens in documents]
        batch = pad_sequence([torch.tensor(head) for head in heads], batch_first=True, padding_value=PAD)
        for tokens, head, (best, *_) in zip(
            documents, heads, search(self._transformer, batch.to(self.device)), strict=True
        ):
            text = self.model.tokenizer.decode(best.tokens.tolist())
            yield Summary(text, best.score, len(best.tokens), len(tokens), len(head))
