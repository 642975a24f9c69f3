"""Windows of a stream of characters."""

from typing import Any, Optional

import numpy as np
import torch
from fairseq.data import FairseqDataset
from fairseq.data.data_utils import collate_tokens
from torch import Tensor

from pyramidions.text.tokenizer import EOS, PAD


class CharacterWindows(FairseqDataset):
    """Consecutive windows of a stream; each character is predicted from those before it.

    The end of a text, ``</s>``, stands in front of the stream's first character. Training rolls the stream by a random
    number of characters in each epoch, shuffles the windows and leaves out what is shorter than a window (Nawrot et al.
    2023, released code). Other windows are those of the stream as it stands, and the last one may be shorter.

    A window shows ``context`` more characters in front of those that it predicts, as far as there are any.
    ``boundaries`` (characters,) supervise, 1 at the last characters of segments. Without a seed, nothing is drawn.
    """

    def __init__(
        self,
        stream: np.ndarray,
        window: int,
        *,
        context: int = 0,
        boundaries: Optional[np.ndarray] = None,
        seed: Optional[int] = None,
    ) -> None:
        self.stream = stream
        self.window = window
        self.context = context
        self.boundaries = boundaries
        self._seed = seed
        self._epoch = 1
        self._roll = 0
        count = len(stream) // window if seed is not None else -(-len(stream) // window)
        begins = np.arange(count, dtype=np.int64) * window
        # Of one window: where what it shows begins, where what it predicts does, and where it ends.
        self._places = np.stack(
            [np.maximum(begins - context, 0), begins, np.minimum(begins + window, len(stream))], axis=1
        )

    def with_context(self, context: int) -> "CharacterWindows":
        return CharacterWindows(self.stream, self.window, context=context, boundaries=self.boundaries)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> dict[str, Any]:
        shown, begin, end = self._places[index].tolist()
        places = (np.arange(shown, end) + self._roll) % len(self.stream)
        source = np.where(places == 0, EOS, self.stream[places - 1]).astype(np.int64)
        target = self.stream[places].astype(np.int64)
        target[: begin - shown] = PAD
        item = {"id": index, "source": torch.from_numpy(source), "target": torch.from_numpy(target)}
        item["start"] = begin - shown
        if self.boundaries is not None:
            ends = (self.boundaries[places - 1] == 1) & (places != 0)
            item["boundaries"] = torch.from_numpy(ends)
        return item

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """Make a batch, padded on the right.

        ``boundaries`` (B, L) is True where a segment of the input ends; ``start_indices`` says where scores begin.
        """
        if not samples:
            return {}

        def padded(name: str, padding: int) -> Tensor:
            return collate_tokens([sample[name] for sample in samples], padding, left_pad=False)

        lengths = [len(sample["source"]) for sample in samples]
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": sum(lengths) - sum(sample["start"] for sample in samples),
            "net_input": {"src_tokens": padded("source", PAD), "src_lengths": torch.tensor(lengths)},
            "target": padded("target", PAD),
            "start_indices": [sample["start"] for sample in samples],
        }
        if self.boundaries is not None:
            batch["boundaries"] = padded("boundaries", False)
        return batch

    @property
    def sizes(self) -> np.ndarray:
        """How many characters each window shows, (windows,)."""
        return self._places[:, 2] - self._places[:, 0]

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    size = num_tokens

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def ordered_indices(self) -> np.ndarray:
        """Return the order of the windows: that of the text, or this epoch's of training."""
        if self._seed is None:
            return np.arange(len(self))
        return np.random.default_rng([self._seed, self._epoch, 1]).permutation(len(self))

    def set_epoch(self, epoch: int) -> None:
        """Roll the stream by as much as this epoch of training does."""
        self._epoch = epoch
        if self._seed is not None:
            self._roll = int(np.random.default_rng([self._seed, epoch]).integers(len(self.stream)))

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """False: fairseq's workers of an earlier epoch would roll as they did then."""
        return False
