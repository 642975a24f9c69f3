"""Summaries of texts, in a few lines of Python."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from pyramidions.data.tokenizer import EOS, PAD
from pyramidions.data.windows import windows
from pyramidions.errors import UserError
from pyramidions.inference.explanation import Explanation, trace
from pyramidions.inference.saved_model import SavedModel, load_model
from pyramidions.inference.summary import Summary
from pyramidions.nn import BeamSearch, Hypothesis


class _Document(NamedTuple):
    """What the model reads of a document, and how many tokens the whole has; both with its end."""

    head: list[int]
    tokens: int


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
        texts: Iterable[str],
        *,
        beam: int | None = None,
        min_len: int | None = None,
        max_len: int | None = None,
        length_penalty: float | None = None,
        no_repeat_ngram: int = 0,
        batch_size: int = 8,
        on_read: Callable[[int], object] | None = None,
    ) -> list[Summary]:
        """Summarize documents.

        What is None is as the model was made to decode. Documents of like length are read together.

        Args:
            texts: the documents; each must hold text. They are asked for one by one, and none is kept.
            beam: hypotheses of a document.
            min_len: fewest tokens of a summary, without its end.
            max_len: most tokens of a summary, without its end; at most as many as the model writes.
            length_penalty: above 1 favours long summaries.
            no_repeat_ngram: n of the n-grams that a summary holds once at most; 0 allows all.
            batch_size: documents that are read at once.
            on_read: told, while long texts are turned into tokens, how many more characters are.

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
        documents = [self._read(text, f"document {number}", on_read) for number, text in enumerate(texts, 1)]
        longest_first = sorted(range(len(documents)), key=lambda index: -documents[index].tokens)
        found: dict[int, Summary] = {}
        for start in range(0, len(documents), batch_size):
            batch = longest_first[start : start + batch_size]
            best = self._best([documents[index] for index in batch], search)
            found.update((i, self._summary(documents[i], b)) for i, b in zip(batch, best, strict=True))
        return [found[index] for index in range(len(documents))]

    @torch.inference_mode()
    def explain(
        self,
        text: str,
        *,
        beam: int | None = None,
        min_len: int | None = None,
        max_len: int | None = None,
        length_penalty: float | None = None,
        no_repeat_ngram: int = 0,
        on_read: Callable[[int], object] | None = None,
    ) -> Explanation:
        """Summarize a document, and tell where in it the summary comes from.

        Args:
            text: the document.
            beam, min_len, max_len, length_penalty, no_repeat_ngram, on_read: as in `summarize`, which writes the same.

        Raises:
            ValueError: an argument that breaks a rule.
            UserError: a document without text.
        """
        search = self._search(beam, min_len, max_len, length_penalty, no_repeat_ngram)
        if not isinstance(text, str):
            raise UserError(f"`text` must be a single document, but is a {type(text).__name__}.")
        document, tokenizer = self._read(text, "`text`", on_read), self.model.tokenizer
        (best,) = self._best([document], search)
        head = torch.tensor(document.head, device=self.device)
        return Explanation(
            self._summary(document, best),
            [*islice(chain.from_iterable(tokenizer.surfaces(windows(text))), len(head) - 1), ""],
            tokenizer.spellings(best.tokens.tolist()),
            trace(self._transformer, head, best.tokens, EOS),
        )

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

    def _read(self, text: str, what: str, on_read: Callable[[int], object] | None = None) -> _Document:
        """Keep the head of a text and count the rest, window by window."""
        # One position is the end of the text.
        most = self.model.max_source_positions - 1
        head: list[int] = []
        tokens = 0
        for ids in self.model.tokenizer.encode_windows(_watched(text, on_read)):
            head += ids[: most - len(head)]
            tokens += len(ids)
        if not tokens:
            raise UserError(f"A document must hold text, but {what} holds none.")
        return _Document([*head, EOS], tokens + 1)

    def _best(self, documents: list[_Document], search: BeamSearch) -> list[Hypothesis]:
        batch = pad_sequence([torch.tensor(each.head) for each in documents], batch_first=True, padding_value=PAD)
        return [best for best, *_ in search(self._transformer, batch.to(self.device))]

    def _summary(self, document: _Document, best: Hypothesis) -> Summary:
        text = self.model.tokenizer.decode(best.tokens.tolist())
        return Summary(text, best.score, len(best.tokens), document.tokens, len(document.head))


def _watched(text: str, on_read: Callable[[int], object] | None) -> Iterator[str]:
    for window in windows(text):
        yield window
        if on_read is not None:
            on_read(len(window))
