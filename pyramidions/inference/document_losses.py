"""How well a model predicts summaries: from their own document, and from another one."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.base.device import found_device
from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.data.readers import Document
from pyramidions.nn import Transformer
from pyramidions.pretrained.saved_model import SavedModel
from pyramidions.text.tokenizer import EOS


class Losses(NamedTuple):
    """The loss on one document's summary, the mean of its tokens in nats, `</s>` included."""

    id: str  # of the document
    own: float  # where the model reads the document
    another: float  # where it reads the next document of the split instead
    # Of a model that copies, the share of the summary that is probably copied from its own document; else None.
    copied: float | None


class FolderLosses:
    """Measures a model on the first documents of a split, which it reads as in training: truncated.

    The model, whose tokenizer the folder must have, is moved to the device. Fewer documents are measured where there
    are fewer.
    """

    def __init__(
        self, model: SavedModel, folder: DataFolder, split: str, documents: int, device: str | None = None
    ) -> None:
        tokenizer = model.tokenizer
        if folder.tokenizer() != tokenizer:
            raise UserError(f"The model was trained with another tokenizer than that of the data folder {folder.path}.")
        if folder.has_queries != model.queries:
            having, trained = ("have", "without") if folder.has_queries else ("have no", "with")
            raise UserError(f"The documents of {folder.path} {having} queries, but the model was trained {trained}.")
        self._device = found_device(device)
        self._transformer = model.transformer.eval().to(self._device)
        self._tokenizer = tokenizer
        self._front = tokenizer.encode(model.source_prefix)
        self._most_source = tokenizer.room(model.max_source_positions, "max_source_positions")
        self._most_target = tokenizer.room(model.max_target_positions, "max_target_positions")
        folder.verify(split, hashes=True)
        self._sources = IndexedReader(folder.indexed(split, "source"))
        self._targets = IndexedReader(folder.indexed(split, "target"))
        self._ids = [reference.id for reference in folder.references(split)]
        self._queries = folder.has_queries
        self._documents = min(documents, len(self._sources))
        if self._documents < 2:
            raise UserError(
                f"The split {split} of {folder.path} must have at least 2 documents, one to stand for the other, but "
                f"has {self._documents}."
            )

    def __len__(self) -> int:
        return self._documents

    def __iter__(self) -> Iterator[Losses]:
        # For parts that draw at random, such as the scorer `random`.
        torch.manual_seed(1)
        for index, name in enumerate(self._ids[: self._documents]):
            target = self._tokenizer.framed(self._targets[index][:-1][: self._most_target])
            query, own = self._parts(index)
            # The last document gets the first one.
            _, another = self._parts((index + 1) % self._documents)
            loss, copied = self._read(query, own, target)
            other, _ = self._read(query, another, target, copies=False)
            yield Losses(name, loss, other, copied)

    def _parts(self, index: int) -> tuple[list[int], list[int]]:
        """Return the ids of a document's query, its `</s>` included, and of its text."""
        ids = self._sources[index][:-1]
        begin = ids.index(self._tokenizer.eos) + 1 if self._queries else 0
        return ids[:begin], ids[begin:]

    def _read(
        self, query: list[int], text: list[int], target: list[int], copies: bool = True
    ) -> tuple[float, float | None]:
        front = [*self._front, *query]
        read = [*front, *self._tokenizer.head(text, self._most_source - len(front))]
        source = self._tokenizer.framed(read[: self._most_source])
        ids = torch.tensor([source], device=self._device), torch.tensor([target], device=self._device)
        losses, copied = losses_and_copied(self._transformer, *ids, copies, self._tokenizer.eos)
        return float(losses.mean()), None if copied is None else float(copied.mean())


def token_losses(model: SavedModel, document: Document) -> Tensor:
    """Return how improbable a model finds each token of a document's summary, in nats: (T,); both are truncated."""
    source, target = model.source_ids(document.source), model.target_ids(document.target)
    ids = torch.tensor([source]), torch.tensor([target])
    losses, _ = losses_and_copied(model.transformer, *ids, copies=False, eos=model.tokenizer.eos)
    return losses


@torch.inference_mode()
def losses_and_copied(
    transformer: Transformer, source: Tensor, target: Tensor, copies: bool = True, eos: int = EOS
) -> tuple[Tensor, Tensor | None]:
    """Return how improbable a model finds each token of a summary, in nats, and how likely each is copied.

    The ids are of the document, (1, L), and of the summary with its end, (1, T). Both results are (T,) in float32; the
    second, given that the token is written, is None if the model copies nothing.
    """
    given = torch.cat([torch.full_like(target[:, :1], eos), target[:, :-1]], dim=1)
    memories = transformer.encoder(source, source.eq(transformer.padding_idx)).memories
    # (1, T, V)
    log_probs = transformer.decoder(given, memories).float().log_softmax(-1)
    # (1, T, V) -> (1, T)
    log_probs = log_probs.gather(2, target[..., None])[..., 0]
    # (1, T, L)
    copied = transformer.decoder.copied(target, memories, eos, log_probs) if copies else None
    return -log_probs[0], None if copied is None else copied[0].sum(-1)
