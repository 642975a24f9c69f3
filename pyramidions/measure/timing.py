"""Seconds of a training step and of decoding, as table 10 of Pietruszka et al. 2022 has them.

Needs torch only, so that any machine with a GPU will do.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.errors import UserError
from pyramidions.measure.cost import Lengths, cost_of
from pyramidions.measure.gpus import why_no_gpu
from pyramidions.measure.provenance import commit, hardware, versions
from pyramidions.models.builder import build
from pyramidions.models.experiment import Experiment
from pyramidions.nn import BeamSearch, Transformer

DEVICES = ("cpu", "cuda")
PRECISIONS = ("fp32", "bf16")
PAD, EOS, FIRST = 1, 2, 4  # as in prepared data; tokens of synthetic texts begin at FIRST
CLIP_NORM = 1.0
_LR = 5e-4
_SHORT_SOURCE, _SHORT_TARGET = 1024, 128  # tokens of the document that tells beforehand how long all will take

#: Called with what is timed and how many calls of decoders that will take; gives what is called after each of them.
Watch = Callable[[str, int], AbstractContextManager[Callable[[], object]]]


@dataclass(frozen=True)
class Plan:
    """What is timed, and how.

    Attributes:
        train_batch: documents of a training step.
        micro_batch: documents of it that are in memory at a time, their gradients added up; None for all of them.
        target_tokens: of a synthetic summary in the training step; None for the longest that a config allows.
        decode_batch: documents that are decoded together.
        decode_tokens: how many tokens each beam is forced to write, the end included, in one timing each; none to
            time training alone.
        repeats: timings of each kind, at least 2.
        warmup: turns before them that are not counted.
        vocab_size: V, specials included.
        seed: of weights, documents and dropout.
        device: cpu or cuda, the current GPU.
        precision: fp32, or bf16: autocast to bfloat16 in training and in decoding, while parameters, gradients and
            Adam's moments stay in float32.

    Raises:
        UserError: a value that breaks a rule, or a device that is not there.
    """

    train_batch: int = 64
    micro_batch: int | None = None
    target_tokens: int | None = None
    decode_batch: int = 8
    decode_tokens: tuple[int, ...] = (256, 512)
    repeats: int = 5
    warmup: int = 2
    vocab_size: int = 32768
    seed: int = 1
    device: str = "cpu"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        least = {"train_batch": 1, "decode_batch": 1, "repeats": 2, "warmup": 0, "vocab_size": FIRST + 1}
        least |= {name: 1 for name in ("micro_batch", "target_tokens") if getattr(self, name) is not None}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise UserError(f"`{name}` must be at least {bound}, but is {getattr(self, name)}.")
        if self.micro_batch is not None and self.micro_batch > self.train_batch:
            raise UserError(
                f"`micro_batch` must be at most `train_batch`, {self.train_batch}, but is {self.micro_batch}."
            )
        tokens = self.decode_tokens
        if (tokens and min(tokens) < 1) or len(set(tokens)) < len(tokens):
            raise UserError(f"`decode_tokens` must be positive and differ, but are {tokens}.")
        for name, known in (("device", DEVICES), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise UserError(f"`{name}` must be one of {', '.join(known)}, but is {getattr(self, name)!r}.")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise UserError(f"`device` must be cpu, but is cuda: {why_no_gpu()}.")

    @property
    def pieces(self) -> int:
        """How many pieces a training step is made of."""
        return -(-self.train_batch // (self.micro_batch or self.train_batch))

    def autocast(self) -> torch.autocast:
        """Return a context of this precision."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bf16")


class Timed(NamedTuple):
    """What one thing took, turn by turn.

    Attributes:
        seconds: of each turn after the warm-up.
        peak_bytes: the most GPU memory that tensors took in a turn, without those of other configs; None on a CPU.
    """

    seconds: list[float]
    peak_bytes: int | None

    @property
    def mean(self) -> float:
        """Mean, in seconds."""
        return statistics.mean(self.seconds)

    @property
    def deviation(self) -> float:
        """Standard deviation of a sample, in seconds."""
        return statistics.stdev(self.seconds)

    @property
    def median(self) -> float:
        """Median, in seconds."""
        return statistics.median(self.seconds)

    def ratio_to(self, other: "Timed") -> dict[str, float]:
        """Return the ratio of medians, and the lowest and highest ratio of two neighbouring turns."""
        ratios = [mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True)]
        return {"medians": self.median / other.median, "low": min(ratios), "high": max(ratios)}


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
        prefix = F.pad(summaries[:, :-1], (1, 0), value=EOS)
        with autocast():
            # (B, T, V) -> (BT, V)
            logits = model(documents, prefix).flatten(0, 1).float()
            loss = F.cross_entropy(logits, summaries.flatten(), reduction="sum") / target.numel()
        loss.backward()


class _Contender:
    """A freshly built model with synthetic texts of its full length, on the device."""

    def __init__(self, experiment: Experiment, plan: Plan) -> None:
        self.experiment = experiment
        self.plan = plan
        torch.manual_seed(plan.seed)
        self.model = build(experiment.model, plan.vocab_size, PAD).to(plan.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=_learning_rate(experiment))
        batch = max(plan.train_batch, plan.decode_batch)
        self.source = self._texts(batch, experiment.max_source_positions)
        self.target = self._texts(plan.train_batch, plan.target_tokens or experiment.max_target_positions)

    def _texts(self, count: int, length: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.plan.seed)
        texts = torch.randint(FIRST, self.plan.vocab_size, (count, length), generator=generator)
        texts[:, -1] = EOS
        return texts.to(self.plan.device)

    def train(self) -> None:
        """Make one training step."""
        size = self.plan.train_batch
        self.optimizer.zero_grad()
        micro_batch = self.plan.micro_batch or size
        add_gradients(self.model, self.source[:size], self.target, micro_batch, self.plan.autocast)
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self.optimizer.step()

    def decode(self, tokens: int, documents: Tensor) -> None:
        """Write exactly so many tokens for documents, (B, L), the end included."""
        config = self.experiment.model
        search = BeamSearch(
            config.decoding_beam, tokens - 1, tokens - 1, config.decoding_length_penalty, eos=EOS, best=1
        )
        with self.plan.autocast():
            search(self.model, documents)

    def _telling_of_memory(self, tokens: int | None) -> AbstractContextManager[None]:
        """Say where memory runs out, and which option helps: decoding ``tokens`` or, where that is None, training."""
        if tokens is None:
            what = f"a training step of {self.experiment.name} that takes"
            limit = f"{self.plan.micro_batch or self.plan.train_batch} documents at a time (--micro-batch)"
        else:
            what = f"decoding {tokens} tokens with {self.experiment.name}, which takes"
            limit = f"{self.plan.decode_batch} documents at a time (--decode-batch)"
        return _telling_of_memory(f"{what} {limit}")

    def take_turn(self, tokens: int | None, tick: Callable[[], object]) -> tuple[float, int | None]:
        """Decode ``tokens`` or, where that is None, train; return seconds and the peak of all memory on a GPU."""
        self.model.train(tokens is None)

        def count(*_: object) -> None:
            tick()

        hook = self.model.decoder.register_forward_hook(count)
        try:
            documents = self.source[: self.plan.decode_batch]
            with self._telling_of_memory(tokens):
                return clock(self.train if tokens is None else lambda: self.decode(tokens, documents), self.plan.device)
        finally:
            hook.remove()
            self.optimizer.zero_grad()

    def seconds_a_turn(self) -> float:
        """Return about how many seconds a turn of each kind takes together on the CPU.

        One short document is trained on and decoded; multiplications say how much more the whole of it is.
        """
        plan, experiment = self.plan, self.experiment
        source, target = self.source[:1, :_SHORT_SOURCE], self.target[:1, :_SHORT_TARGET]
        self.model.train()
        with self._telling_of_memory(None):
            seconds, _ = clock(partial(add_gradients, self.model, source, target, 1, plan.autocast), "cpu")
        self.optimizer.zero_grad()
        each = seconds / self._work(source.size(1), target.size(1))
        total = each * self._work(experiment.max_source_positions, self.target.size(1)) * plan.train_batch
        if plan.decode_tokens:
            # A third of a training step is its forward pass.
            encoding = each / 3 * self._work(experiment.max_source_positions, 1) * plan.decode_batch
            self.model.eval()
            documents = self.source[: plan.decode_batch, :_SHORT_SOURCE]
            with self._telling_of_memory(2):
                few, more = (clock(partial(self.decode, tokens, documents), "cpu")[0] for tokens in (2, 6))
            writing = max(0.0, more - few) / 4
            total += sum(encoding + writing * tokens for tokens in plan.decode_tokens)
        return total

    def _work(self, source: int, target: int) -> float:
        """Return the multiplications of a document and its summary."""
        return cost_of(self.experiment.model, Lengths(source, target, 1, self.plan.vocab_size)).total()

    def bytes_between_turns(self) -> int:
        """Return what lies on the device all the time: weights, moments and texts."""
        states = [value for state in self.optimizer.state.values() for value in state.values()]
        tensors = [*self.model.parameters(), *self.model.buffers(), *states, self.source, self.target]
        return sum(tensor.nbytes for tensor in tensors if tensor.device.type == self.plan.device)


def clock(work: Callable[[], object], device: str) -> tuple[float, int | None]:
    """Do something on a device that is idle before and after; return its seconds and, of a GPU, the peak in bytes."""
    if device == "cpu":
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin, None
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000, torch.cuda.max_memory_allocated()


def _learning_rate(experiment: Experiment) -> float:
    lr = experiment.run.get("optimization", {}).get("lr", _LR)
    return float(lr[0] if isinstance(lr, list) else lr)


@contextmanager
def _telling_of_memory(what: str) -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # torch has a class for a GPU's memory only.
        out = isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)
        if not out:
            raise
        raise UserError(f"Memory ran out in {what}.") from None


@contextmanager
def _unwatched(phase: str, calls: int) -> Iterator[Callable[[], object]]:
    yield lambda: None


def time_models(
    experiments: Sequence[Experiment],
    plan: Plan,
    watch: Watch = _unwatched,
    forecast: Callable[[float], object] | None = None,
) -> list[dict[str, Timed]]:
    """Time models that take turns, so that what slows the machine for a while slows all of them.

    A training step is forward, cross entropy over all positions, backward, clipping and Adam, with dropout as
    configured; decoding is encoder and beam search with the config's beam and length penalty, of exactly as many
    tokens as steps. All documents are as long as the config allows. All models stay in memory throughout.

    Args:
        experiments: the models.
        plan: what is timed.
        watch: is told of progress.
        forecast: is told before the first turn how many seconds all of them will take, about, which small turns on the
            CPU tell; None goes without.

    Returns:
        Of each model "train_step" and "decode_N" for each number of tokens N.

    Raises:
        UserError: a config that breaks a rule, or memory that ran out.
    """
    with _telling_of_memory("building the models and their synthetic texts"):
        contenders = [_Contender(experiment, plan) for experiment in experiments]
    if forecast is not None:
        forecast((plan.warmup + plan.repeats) * sum(contender.seconds_a_turn() for contender in contenders))
    results: list[dict[str, Timed]] = [{"train_step": Timed([], None)} for _ in contenders]
    # Training comes last: it changes the weights.
    for tokens in (*plan.decode_tokens, None):
        phase = "train_step" if tokens is None else f"decode_{tokens}"
        rounds = plan.warmup + plan.repeats
        with watch(phase, rounds * len(contenders) * (plan.pieces if tokens is None else tokens)) as tick:
            turns = [_round(contenders, tokens, tick) for _ in range(rounds)][plan.warmup :]
        for result, taken in zip(results, zip(*turns, strict=True), strict=True):
            seconds, peaks = zip(*taken, strict=True)
            result[phase] = Timed(list(seconds), None if None in peaks else max(peaks))
    return results


def _round(
    contenders: list[_Contender], tokens: int | None, tick: Callable[[], object]
) -> list[tuple[float, int | None]]:
    """Give each a turn: what it took, and the peak of memory without what lies there for the others."""
    taken = []
    for contender in contenders:
        others = sum(other.bytes_between_turns() for other in contenders if other is not contender)
        seconds, peak = contender.take_turn(tokens, tick)
        taken.append((seconds, None if peak is None else peak - others))
    return taken


def report(
    experiments: Sequence[Experiment], plan: Plan, results: list[dict[str, Timed]], overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what was timed, on what and how, as plain values for a JSON file.

    Args:
        experiments: the models.
        plan: how they were timed.
        results: what `time_models` returned.
        overrides: with which the experiments were read.
    """
    return {
        "overrides": list(overrides),
        "commit": commit(),
        "versions": versions(),
        "hardware": hardware(plan.device),
        **asdict(plan),
        "configs": [
            {
                "config": experiment.name,
                "source_tokens": experiment.max_source_positions,
                "target_tokens": plan.target_tokens or experiment.max_target_positions,
                "beam": experiment.model.decoding_beam,
                **{phase: _plain(timed, results[0][phase]) for phase, timed in result.items()},
            }
            for experiment, result in zip(experiments, results, strict=True)
        ],
    }


def _plain(timed: Timed, first: Timed) -> dict[str, Any]:
    return {
        "seconds": timed.seconds,
        "mean": timed.mean,
        "standard_deviation": timed.deviation,
        "median": timed.median,
        "ratio_to_first": timed.ratio_to(first),
        "peak_bytes": timed.peak_bytes,
    }
