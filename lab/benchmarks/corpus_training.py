"""What `throughput.py` times: a model set up as fairseq-train does, and ways of batching a corpus for it."""

import argparse
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from fairseq import optim, options, tasks, utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from torch import Tensor, nn

import pyramidions  # noqa: F401  (registers the models, the task and the criterion)
from pyramidions.nn import stage
from pyramidions.nn.block_layout import BlockLayout
from pyramidions.runs.measure import Lengths, cost_of


class EveryBlock(BlockLayout):
    """A layout that leaves out nothing; masks are what they would be.

    Args:
        padding_mask: (B, L), True at padding.
        block_size: positions in a block, M, or None.
        lengths: as the encoder knows them, and not needed here.
    """

    def __init__(self, padding_mask: Tensor, block_size: int | None, lengths: Sequence[int] | None = None) -> None:
        super().__init__(torch.zeros_like(padding_mask), block_size)
        # (B, L) -> (B * L/M, M); what fills the last block is no more real than padding
        self.padding_mask = ~self.pack(~padding_mask)


class Training:
    """A model with its task and criterion, set up as fairseq-train does.

    Args:
        arch: name of the preset.
        args: what the user said.
        flags: of fairseq-train, which overrule.
    """

    def __init__(self, arch: str, args: argparse.Namespace, flags: Sequence[str]) -> None:
        dropout = [f"--{kind}dropout={args.dropout}" for kind in ("", "attention-", "activation-")]
        known = options.get_training_parser(default_task="long_document_summarization")
        given = [str(args.data), "--arch", arch, "--max-source-positions", str(args.source), *dropout]
        given += ["--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--seed", str(args.seed), *flags]
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(known, given))
        torch.manual_seed(args.seed)
        self.device = args.device
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model).to(args.device)
        self.criterion = self.task.build_criterion(cfg.criterion)
        self.optimizer = optim.build_optimizer(cfg.optimizer, list(self.model.parameters()))
        self.task.load_dataset("train")
        self.dataset = self.task.dataset("train")

    def batches(self, max_tokens: int, documents: int, seed: int) -> list[np.ndarray]:
        """Return evenly spaced batches of the task's own, in order of length.

        Args:
            max_tokens: of a batch.
            documents: about how many all of them hold.
            seed: decides which documents of equal length share a batch.
        """
        made = self.task.get_batch_iterator(self.dataset, max_tokens=max_tokens, seed=seed).frozen_batches
        count = max(1, round(len(made) * min(1, documents / len(self.dataset))))
        return [np.asarray(made[int((number + 0.5) * len(made) / count)]) for number in range(count)]

    def full_lengths(self) -> np.ndarray:
        """Return the tokens of each document before it is cut: (documents,)."""
        return np.array(self.dataset.src.dataset.sizes)

    def step(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Add the gradients of a batch; return what the criterion logs."""
        batch = batch if self.device == "cpu" else utils.move_to_cuda(batch)
        logged: dict[str, Any]
        _, _, logged = self.task.train_step(batch, self.model, self.criterion, self.optimizer, update_num=0)
        return logged

    def ceiling(self, documents: np.ndarray, longest: int) -> float:
        """Return how many times as many multiplications ``documents`` take at ``longest`` tokens as at their own."""
        count = partial(Lengths, batch=1, vocab_size=len(self.task.target_dictionary))
        padded = own = 0
        for number in documents:
            source, target = int(self.dataset.src_sizes[number]), int(self.dataset.tgt_sizes[number])
            padded += cost_of(self.model.config, count(longest, target)).total()
            own += cost_of(self.model.config, count(source, target)).total()
        return padded / own


class Way:
    """A way through documents; called, it takes a turn.

    Args:
        training: what trains.
        batches: numbers of the documents of each batch.
        pad_to: tokens that each batch is padded to; every position is then computed. None for neither.
    """

    def __init__(
        self, training: Training, batches: Sequence[Sequence[int] | np.ndarray], pad_to: int | None = None
    ) -> None:
        self.training = training
        self._layout = BlockLayout if pad_to is None else EveryBlock
        collate = training.dataset.collater
        if pad_to is not None:
            collate = partial(collate, pad_to_length={"source": pad_to, "target": None})
        # Workers and buffer are fairseq-train's own defaults.
        self._epochs = EpochBatchIterator(
            training.dataset, collate, batches, num_workers=1, buffer_size=10, reuse_dataloader=True
        )
        #: seconds of each step in each turn, waiting for its data included: (turns, batches)
        self.steps: list[list[float]] = []
        #: seconds of these that passed in waiting: (turns, batches)
        self.waits: list[list[float]] = []
        #: positions that the encoder's first layer computed in the last turn
        self.source_positions = 0
        #: positions that the decoder computed in the last turn
        self.target_positions = 0
        #: mean cross entropy of a target token in the last turn, in nats
        self.loss = 0.0

    def _laid_out(self) -> AbstractContextManager[Any]:
        return mock.patch.object(stage, "BlockLayout", self._layout)

    def warm_up(self) -> None:
        """Train on one document."""
        document = self.training.dataset[int(self._epochs.frozen_batches[0][0])]
        with self._laid_out():
            self.training.step(self._epochs.collate_fn([document]))
        self.training.optimizer.zero_grad()

    def __call__(self) -> None:
        """Take a turn."""
        batches = self._epochs.next_epoch_itr(shuffle=False)
        steps, waits, logs = [], [], []
        self.source_positions = self.target_positions = 0
        hook = self.training.model.encoder.core.layers[0].register_forward_pre_hook(self._count)
        with self._laid_out():
            while batches.has_next():
                begin = time.perf_counter()
                batch = next(batches)
                waits.append(time.perf_counter() - begin)
                logged = self.training.step(batch)
                logs.append((float(logged["loss"]), int(logged["ntokens"])))  # waits for the device
                steps.append(time.perf_counter() - begin)
                self.target_positions += batch["target"].numel()
        hook.remove()
        self.training.optimizer.zero_grad()
        self.steps.append(steps)
        self.waits.append(waits)
        self.loss = sum(loss for loss, _ in logs) / sum(tokens for _, tokens in logs)

    def _count(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # (N, M, D) or (B, L, D)
        self.source_positions += inputs[0].size(0) * inputs[0].size(1)

    def waiting(self) -> list[float]:
        """Return the share of each turn's steps after its first that passed in waiting, in percent: (turns,)."""
        return [
            100 * sum(waits[1:]) / sum(steps[1:]) if steps[1:] else 0.0
            for waits, steps in zip(self.waits, self.steps, strict=True)
        ]
