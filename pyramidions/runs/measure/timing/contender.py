"""A model that trains and decodes on synthetic texts of its full length."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.models.builder import build
from pyramidions.models.experiment import Experiment
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.runs.measure.cost import Lengths, cost_of
from pyramidions.runs.measure.timing import stopwatch
from pyramidions.runs.measure.timing.plan import FIRST_TOKEN, Plan
from pyramidions.runs.measure.timing.stopwatch import naming_what_took_memory

_PAD, _EOS = 1, 2  # as in prepared data
_MARKER, _SENTENCE = FIRST_TOKEN, 32  # tokens of a sentence, for models that read markers
_CLIP_NORM = 1.0
_LR = 5e-4
_SHORT_SOURCE, _SHORT_TARGET = 1024, 128  # tokens of the document that tells beforehand how long all turns will take


def add_gradients(
    model: Transformer, source: Tensor, target: Tensor, micro_batch: int, autocast: Callable[[], torch.autocast]
) -> None:
    """Add up the gradients of the mean cross entropy over all positions of a batch, piece by piece.

    Args:
        model: in training mode.
        source: (B, L), the documents.
        target: (B, T), their summaries, without padding.
        micro_batch: documents of a piece; the last one may have fewer.
        autocast: the context of the forward passes.
    """
    for documents, summaries in zip(source.split(micro_batch), target.split(micro_batch), strict=True):
        prefix = F.pad(summaries[:, :-1], (1, 0), value=_EOS)
        with autocast():
            # (B, T, V) -> (BT, V)
            logits = model(documents, prefix).flatten(0, 1).float()
            loss = F.cross_entropy(logits, summaries.flatten(), reduction="sum") / target.numel()
        loss.backward()


class Contender:
    """A freshly built model with synthetic texts of its full length, on the device.

    Args:
        experiment: the model and its lengths.
        plan: what is timed.
    """

    def __init__(self, experiment: Experiment, plan: Plan) -> None:
        self.experiment = experiment
        self.plan = plan
        torch.manual_seed(plan.seed)
        longest = max(experiment.max_target_positions, plan.target_tokens or 0)
        self.model = build(experiment.model, plan.vocab_size, _PAD, _MARKER, longest).to(plan.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=_learning_rate(experiment))
        batch = max(plan.train_batch, plan.decode_batch)
        self.source = self._texts(batch, experiment.max_source_positions)
        self.target = self._texts(plan.train_batch, plan.target_tokens or experiment.max_target_positions)

    def _texts(self, count: int, length: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.plan.seed)
        texts = torch.randint(FIRST_TOKEN, self.plan.vocab_size, (count, length), generator=generator)
        texts[:, ::_SENTENCE] = _MARKER
        texts[:, -1] = _EOS
        return texts.to(self.plan.device)

    def clock(self, tokens: int | None, work: Callable[[], object]) -> tuple[float, int | None]:
        """Return the seconds, and the peak of all memory on a GPU, of decoding ``tokens`` or, where None, of training.

        Raises:
            UserError: memory ran out.
        """
        name = self.experiment.name
        if tokens is None:
            what = f"a training step of {name} that takes {self.plan.at_a_time} documents at a time (--micro-batch)"
        else:
            limit = f"{self.plan.decode_batch} documents at a time (--decode-batch)"
            what = f"decoding {tokens} tokens with {name}, which takes {limit}"
        self.model.train(tokens is None)
        try:
            with naming_what_took_memory(what):
                return stopwatch.clock(work, self.plan.device)
        finally:
            self.optimizer.zero_grad()

    def take_turn(self, tokens: int | None, tick: Callable[[], object]) -> tuple[float, int | None]:
        """Decode ``tokens`` or, where None, make a training step; call ``tick`` whenever the decoder was called."""
        documents = self.source[: self.plan.decode_batch]

        def called(*_: object) -> None:
            tick()

        hook = self.model.decoder.register_forward_hook(called)
        try:
            return self.clock(tokens, self.train if tokens is None else lambda: self.decode(tokens, documents))
        finally:
            hook.remove()

    def train(self) -> None:
        """Make a training step."""
        self.optimizer.zero_grad()
        source = self.source[: self.plan.train_batch]
        add_gradients(self.model, source, self.target, self.plan.at_a_time, self.plan.autocast)
        nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP_NORM)
        self.optimizer.step()

    def decode(self, tokens: int, documents: Tensor) -> None:
        """Write exactly so many tokens for documents, (B, L), the end included."""
        config = self.experiment.model
        search = BeamSearch(
            config.decoding_beam, tokens - 1, tokens - 1, config.decoding_length_penalty, eos=_EOS, best=1
        )
        with self.plan.autocast():
            search(self.model, documents)

    def seconds_a_turn(self) -> float:
        """Return about how many seconds a turn of each kind takes together on the CPU.

        One short document is trained on and decoded; multiplications tell how much more work all of it is.
        """
        plan, longest = self.plan, self.experiment.max_source_positions
        source, target = self.source[:1, :_SHORT_SOURCE], self.target[:1, :_SHORT_TARGET]
        seconds, _ = self.clock(None, lambda: add_gradients(self.model, source, target, 1, plan.autocast))
        each = seconds / self._work(source.size(1), target.size(1))
        total = each * self._work(longest, self.target.size(1)) * plan.train_batch
        if plan.decode_tokens:
            # A third of a training step is its forward pass.
            encoding = each / 3 * self._work(longest, 1) * plan.decode_batch
            documents = self.source[: plan.decode_batch, :_SHORT_SOURCE]
            few, more = (self.clock(n, partial(self.decode, n, documents))[0] for n in (2, 6))
            writing = max(0.0, more - few) / 4
            total += sum(encoding + writing * tokens for tokens in plan.decode_tokens)
        return total

    def _work(self, source: int, target: int) -> int:
        """Return the multiplications of a document and its summary."""
        return cost_of(self.experiment.model, Lengths(source, target, 1, self.plan.vocab_size)).total()

    def bytes_between_turns(self) -> int:
        """Return what lies on the device all the time: weights, moments and texts."""
        states = [value for state in self.optimizer.state.values() for value in state.values()]
        tensors = [*self.model.parameters(), *self.model.buffers(), *states, self.source, self.target]
        return sum(tensor.nbytes for tensor in tensors if tensor.device.type == self.plan.device)


def _learning_rate(experiment: Experiment) -> float:
    lr = experiment.run.get("optimization", {}).get("lr", _LR)
    return float(lr[0] if isinstance(lr, list) else lr)
