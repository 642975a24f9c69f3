"""`python -m lab time`: seconds of a training step and of decoding, as table 10 of Pietruszka et al. 2022 has them.

Models take turns, so that whatever slows the machine for a while slows all of them.
"""

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.benchmark.utils.timer import timer

from lab.environment import commit, hardware, versions, why_no_gpu
from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, user_dir_option
from pyramidions.cli.outputs import check_output, write_json
from pyramidions.files.progress import progress_bar
from pyramidions.models.builder import build
from pyramidions.models.experiment import Experiment, read_experiment, with_lengths
from pyramidions.nn import BeamSearch, Transformer

PAD, EOS, FIRST = 1, 2, 4  # as in prepared data; synthetic tokens begin at FIRST
_MARKER, _SENTENCE = FIRST, 32  # tokens of a sentence, for models that read markers
_CLIP_NORM, _LR = 1.0, 5e-4
#: What a CPU does in minutes; a GPU gets the sizes of the paper's table 10.
_ON_CPU: dict[str, Any] = {"train_batch": 2, "decode_batch": 2, "decode_tokens": (32,)}


@dataclass(frozen=True)
class Plan:
    """What is timed, and how; batches are documents.

    Attributes:
        micro_batch: documents of a training step in memory at a time, their gradients added up; None for all of them.
        target_tokens: of a synthetic summary in the training step; None for the longest that a config allows.
        decode_tokens: how many tokens each beam is forced to write, the end included, in one timing each; none to
            time training alone.
        vocab_size: V, specials included.
        precision: fp32, or bf16: autocast to bfloat16 in training and in decoding, while parameters, gradients and
            Adam's moments stay in float32.
    """

    train_batch: int = 64
    micro_batch: int | None = None
    target_tokens: int | None = None
    decode_batch: int = 8
    decode_tokens: Sequence[int] = (256, 512)
    repeats: int = 5
    warmup: int = 2
    vocab_size: int = 32768
    seed: int = 1
    device: str = "cpu"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.at_a_time > self.train_batch:
            raise UserError(
                f"--micro-batch must be at most --train-batch, {self.train_batch}, but is {self.micro_batch}."
            )
        if self.device == "cuda" and not torch.cuda.is_available():
            raise UserError(f"--device must be cpu, but is cuda: {why_no_gpu()}.")

    @property
    def at_a_time(self) -> int:
        """Documents of a training step that are in memory at a time."""
        return self.micro_batch or self.train_batch

    @property
    def pieces(self) -> int:
        """Pieces that a training step consists of."""
        return -(-self.train_batch // self.at_a_time)

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

    def as_json(self, first: "Timed") -> dict[str, Any]:
        """Return all figures as plain values, with the ratio to another thing."""
        figures = {"mean": self.mean, "standard_deviation": self.deviation, "median": self.median}
        return {**self._asdict(), **figures, "ratio_to_first": self.ratio_to(first)}


def clock(work: Callable[[], object], device: str) -> tuple[float, int | None]:
    """Time a call, with the device idle before and after. Returns seconds and, on a GPU, peak bytes."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    # It waits for a GPU.
    begin = timer()
    work()
    seconds = timer() - begin
    return seconds, torch.cuda.max_memory_allocated() if device == "cuda" else None


def take_turns(
    contenders: Mapping[str, Callable[[], tuple[float, int | None]]],
    repeats: int,
    warmup: int,
    tell: Callable[[int, str, float], object] = lambda turn, name, seconds: None,
) -> dict[str, Timed]:
    """Time contenders in turns, of which those of the warm-up do not count.

    Each takes one and returns seconds and peak, as `clock` does; `tell` gets its number (from 1), name and seconds.
    """
    taken: dict[str, list[tuple[float, int | None]]] = {name: [] for name in contenders}
    for turn in range(1, warmup + repeats + 1):
        for name, work in contenders.items():
            taken[name].append(work())
            tell(turn, name, taken[name][-1][0])
    return {
        name: Timed([seconds for seconds, _ in turns[warmup:]], max((p for _, p in turns[warmup:] if p), default=None))
        for name, turns in taken.items()
    }


@contextmanager
def naming_what_took_memory(what: str) -> Iterator[None]:
    """Raise a UserError that names the work where memory runs out."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # torch has a class for a GPU's memory only.
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error):
            raise UserError(f"Memory ran out in {what}.") from None
        raise


def texts(count: int, length: int, vocab_size: int, device: str = "cpu", seed: int = 1) -> Tensor:
    """Return ``count`` synthetic texts of ``length`` tokens, the end included: (count, length)."""
    drawn = torch.randint(FIRST, vocab_size, (count, length), generator=torch.Generator().manual_seed(seed))
    drawn[:, -1] = EOS
    return drawn.to(device)


def add_gradients(
    model: Transformer, source: Tensor, target: Tensor, micro_batch: int, autocast: Callable[[], torch.autocast]
) -> None:
    """Add up the gradients of the mean cross entropy over all positions of a batch, piece by piece.

    `source` is (B, L), the documents; `target` is (B, T), their summaries, without padding. A piece has `micro_batch`
    documents, the last one perhaps fewer.
    """
    for documents, summaries in zip(source.split(micro_batch), target.split(micro_batch), strict=True):
        prefix = F.pad(summaries[:, :-1], (1, 0), value=EOS)
        with autocast():
            # (B, T, V) -> (BT, V)
            logits = model(documents, prefix).flatten(0, 1).float()
            loss = F.cross_entropy(logits, summaries.flatten(), reduction="sum") / target.numel()
        loss.backward()


class Contender:
    """A freshly built model with synthetic texts of its full length, on the device."""

    def __init__(self, experiment: Experiment, plan: Plan) -> None:
        self.experiment = experiment
        self.plan = plan
        if plan.decode_tokens and plan.vocab_size < (least := experiment.model.decoding_beam + 2):
            raise UserError(
                f"--vocab-size must be at least {least}, for the beam of {experiment.name}, but is {plan.vocab_size}."
            )
        torch.manual_seed(plan.seed)
        longest = max(experiment.max_target_positions, plan.target_tokens or 0, *plan.decode_tokens)
        self.model = build(experiment.model, plan.vocab_size, PAD, _MARKER, longest).to(plan.device)
        lr = experiment.run.get("optimization", {}).get("lr", _LR)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=float(lr[0] if isinstance(lr, list) else lr))
        self.source = self._texts(max(plan.train_batch, plan.decode_batch), experiment.max_source_positions)
        self.target = self._texts(plan.train_batch, plan.target_tokens or experiment.max_target_positions)

    def _texts(self, count: int, length: int) -> Tensor:
        made = texts(count, length, self.plan.vocab_size, self.plan.device, self.plan.seed)
        made[:, :-1:_SENTENCE] = _MARKER
        return made

    def take_turn(self, tokens: int | None) -> tuple[float, int | None]:
        """Decode ``tokens`` or, where None, make a training step; return seconds and, on a GPU, the memory's peak."""
        name = self.experiment.name
        if tokens is None:
            what = f"a training step of {name} that takes {self.plan.at_a_time} documents at a time (--micro-batch)"
        else:
            limit = f"{self.plan.decode_batch} documents at a time (--decode-batch)"
            what = f"decoding {tokens} tokens with {name}, which takes {limit}"
        self.model.train(tokens is None)
        try:
            with naming_what_took_memory(what):
                return clock(self.train if tokens is None else partial(self.decode, tokens), self.plan.device)
        finally:
            self.optimizer.zero_grad()

    def train(self) -> None:
        """Make a training step."""
        self.optimizer.zero_grad()
        source = self.source[: self.plan.train_batch]
        add_gradients(self.model, source, self.target, self.plan.at_a_time, self.plan.autocast)
        nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP_NORM)
        self.optimizer.step()

    def decode(self, tokens: int) -> None:
        """Write exactly so many tokens for each document, the end included."""
        config = self.experiment.model
        search = BeamSearch(
            config.decoding_beam, tokens - 1, tokens - 1, config.decoding_length_penalty, eos=EOS, best=1
        )
        with self.plan.autocast():
            search(self.model, self.source[: self.plan.decode_batch])

    def bytes_between_turns(self) -> int:
        """Return what lies on the device all the time: weights, moments and texts."""
        states = [value for state in self.optimizer.state.values() for value in state.values()]
        tensors = [*self.model.parameters(), *self.model.buffers(), *states, self.source, self.target]
        return sum(tensor.nbytes for tensor in tensors if tensor.device.type == self.plan.device)


def time_models(experiments: Sequence[Experiment], plan: Plan) -> list[dict[str, Timed]]:
    """Time models that take turns; return "train_step" and "decode_N" of each, for each number of tokens N.

    A training step is forward, cross entropy over all positions, backward, clipping and Adam, with dropout as
    configured; decoding is encoder and beam search with the config's beam and length penalty, of exactly as many
    tokens as steps. All documents are as long as the config allows. All models stay in memory throughout.
    """
    with naming_what_took_memory("building the models and their synthetic texts"):
        contenders = {str(number): Contender(experiment, plan) for number, experiment in enumerate(experiments)}

    def turn(contender: Contender, tokens: int | None) -> tuple[float, int | None]:
        """Return the seconds, and the peak of memory without what lies there for the others."""
        others = sum(other.bytes_between_turns() for other in contenders.values() if other is not contender)
        seconds, peak = contender.take_turn(tokens)
        return seconds, None if peak is None else peak - others

    results: list[dict[str, Timed]] = [{"train_step": Timed([], None)} for _ in contenders]
    # Training comes last: it changes the weights.
    for tokens in (*plan.decode_tokens, None):
        phase = "train_step" if tokens is None else f"decode_{tokens}"
        turns = {name: partial(turn, contender, tokens) for name, contender in contenders.items()}
        with progress_bar(phase, (plan.warmup + plan.repeats) * len(turns), "turn") as bar:
            timed = take_turns(turns, plan.repeats, plan.warmup, lambda *_: bar.update())
        for result, found in zip(results, timed.values(), strict=True):
            result[phase] = found
    return results


def report(
    experiments: Sequence[Experiment], plan: Plan, results: list[dict[str, Timed]], overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what `time_models` returned, with the plan, the code and the machine."""
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
                **{phase: timed.as_json(results[0][phase]) for phase, timed in result.items()},
            }
            for experiment, result in zip(experiments, results, strict=True)
        ],
    }


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    if value == "none":
        return ()
    numbers = value.split(",")
    # Two timings of one length would have one name.
    if not all(re.fullmatch("[1-9][0-9]*", number) for number in numbers) or len(set(numbers)) < len(numbers):
        raise click.BadParameter(f"{value!r} is neither none nor a list of different numbers like 256,512.")
    return tuple(map(int, numbers))


@click.command("time", short_help="Time a training step and decoding.")
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG... [OVERRIDES]")
@click.option("--device", default="cpu", type=click.Choice(["cpu", "cuda"]), help="What computes.")
@click.option("--precision", default="fp32", type=click.Choice(["fp32", "bf16"]), help="bf16: by autocast.")
@click.option("--train-batch", type=click.IntRange(1), help="Documents of a training step.  [default: 64; on a CPU 2]")
@click.option("--micro-batch", type=click.IntRange(1), help="Documents of it in memory at a time.  [default: all]")
@click.option("--source-tokens", type=click.IntRange(2), help="Tokens of a document.  [default: the config's most]")
@click.option(
    "--target-tokens", type=click.IntRange(1), help="Tokens of a summary to train on.  [default: the config's most]"
)
@click.option("--decode-batch", type=click.IntRange(1), help="Documents decoded together.  [default: 8; on a CPU 2]")
@click.option(
    "--decode-tokens",
    callback=_numbers,
    metavar="N,...",
    help="How many tokens are written, in one timing each; none times training alone.  [default: 256,512; on a CPU 32]",
)
@click.option("--repeats", default=5, type=click.IntRange(2), help="Timings of each kind.")
@click.option("--warmup", default=2, type=click.IntRange(0), help="Turns before them, not counted.")
@click.option("--vocab-size", default=32768, type=click.IntRange(5), help="Tokens the models know.")
@click.option("--seed", default=1, type=click.IntRange(0, 2**63 - 1), help="Of weights, documents and dropout.")
@user_dir_option
@click.option("--json", "out", type=PATH, help="Write all numbers to this file.")
def time_command(configs: tuple[str, ...], source_tokens: int | None, out: Path | None, **settings: Any) -> None:
    """Time a training step and the decoding of an exact number of tokens, on synthetic documents of full length.

    CONFIG is a preset or a .yaml file of configs/; OVERRIDE is KEY=VALUE in Hydra's words and changes every config. A
    preset is made for documents of --source-tokens; of a file they are at most its task.max_source_positions.
    Several configs take turns, and each is compared with the first. A training step is forward, backward, clipping
    and Adam, dropout included; decoding is the encoder and a beam search as wide as the config's decoding_beam.

    On a CPU the default batches are small.

    \b
    Example:
      python -m lab time deep_blockwise deep_pyramidion --source-tokens 2048
      python -m lab time pyramidion model.pooling=mean --device cuda --micro-batch 8 --json times.json
    """
    overrides = tuple(given for given in configs if "=" in given)
    names = [given for given in configs if given not in overrides]
    if not names:
        raise UserError(f"At least one config must be named, but only overrides are: {' '.join(overrides)}.")
    check_output("--json", out, "an older file of times", map(Path, names))
    chosen = {name: value for name, value in settings.items() if value is not None}
    plan = Plan(**{**(_ON_CPU if settings["device"] == "cpu" else {}), **chosen})
    experiments = [with_lengths(read_experiment(name, overrides), source_tokens, plan.target_tokens) for name in names]
    results = time_models(experiments, plan)
    result = report(experiments, plan, results, overrides)
    click.echo(_table([experiment.name for experiment in experiments], results))
    click.echo(f"\n{_signature(plan, result)}")
    write_json(out, result)


def _table(names: list[str], results: list[dict[str, Timed]]) -> str:
    first = results[0]

    def table(cell: Callable[[Timed, Timed], str], head: str = "") -> str:
        cells = [{phase + head: cell(result[phase], first[phase]) for phase in first} for result in results]
        return pd.DataFrame(cells, names).to_string()

    def ratio(timed: Timed, first: Timed) -> str:
        between = timed.ratio_to(first)
        return f"{between['medians']:.3f} [{between['low']:.3f}, {between['high']:.3f}]"

    parts = [table(lambda timed, _: f"{timed.mean:.4g} ± {timed.deviation:.2g}", ", s")]
    if any(timed.peak_bytes is not None for timed in first.values()):
        parts.append(table(lambda timed, _: f"{(timed.peak_bytes or 0) / 2**30:.2f}", ", peak GiB"))
    if len(names) > 1:
        title = f"Ratio of medians to {names[0]} [lowest, highest of two neighbouring turns]:"
        parts.append(f"{title}\n{table(ratio)}")
    return "\n\n".join(parts)


def _signature(plan: Plan, result: dict[str, Any]) -> str:
    parts = [
        f"mean ± standard deviation of {plan.repeats} turns after {plan.warmup} for warm-up",
        f"training batch {plan.train_batch} in {plan.pieces} pieces" if plan.pieces > 1 else None,
        plan.precision,
        f"{result['hardware']['device']}, threads {result['hardware']['threads']}",
        f"torch {result['versions']['torch']}",
        f"commit {result['commit']}",
        f"seed {plan.seed}",
    ]
    return " | ".join(part for part in parts if part)
