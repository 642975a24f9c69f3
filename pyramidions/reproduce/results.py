"""What `pyramidions reproduce` leaves for each row: read, and checked value by value."""

from pathlib import Path
from typing import NamedTuple

from pyramidions.errors import UserError
from pyramidions.reproduce.catalogue import PaperRow
from pyramidions.reproduce.fields import Fields, Interval

RESULT = "result.json"
SCALES = ("paper", "tiny")
ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
#: What is timed, by the paper's names for it; the second and third stand for the first and second of `decode_tokens`.
PHASES = ("train_s", "infer256_s", "infer512_s")


class Timing(NamedTuple):
    """What one thing took.

    Attributes:
        mean: over the turns, in seconds.
        deviation: standard deviation over the turns, in seconds.
        ratio: median over that of the reference in the same run; lowest and highest of two neighbouring turns.
    """

    mean: float
    deviation: float
    ratio: Interval

    @property
    def speed_up(self) -> Interval:
        """How many times faster than the reference; above 1 is faster."""
        return Interval(1 / self.ratio.value, 1 / self.ratio.high, 1 / self.ratio.low)


class Times(NamedTuple):
    """How a row was timed.

    Attributes:
        reference: the config that took turns with it.
        repeats: turns that count.
        train_batch: documents of a training step.
        decode_batch: documents decoded together.
        precision: "fp32" or "bf16".
        device: what was timed.
        decode_tokens: the lengths that stand for 256 and 512 tokens; none where decoding was not timed.
        phases: by the names in `PHASES`; without decoding where that was not timed.
    """

    reference: str
    repeats: int
    train_batch: int
    decode_batch: int
    precision: str
    device: str
    decode_tokens: tuple[int, ...]
    phases: dict[str, Timing]


class Hardware(NamedTuple):
    """What computed: the device's name, threads of a process, GPUs of each machine (0 for the CPU), machines."""

    device: str
    threads: int
    gpus: int
    nodes: int


class Training(NamedTuple):
    """What a training took, in seconds, updates and epochs."""

    seconds: float
    updates: int
    epochs: int


class Corpus(NamedTuple):
    """The prepared folder that a row was trained and tested on.

    Attributes:
        name: of the folder.
        documents: by split.
    """

    name: str
    documents: dict[str, int]


class Result(NamedTuple):
    """One result file.

    Attributes:
        config: the row's file among the configs, without ".yaml".
        data: the corpus of the paper's row.
        corpus: what stood for it; None where the row was timed only, or where an earlier version wrote the file.
        scale: "paper" or "tiny".
        data_hash: of the prepared corpus; None where the row was timed only.
        commit: of the code.
        versions: of Python and packages.
        hardware: what computed.
        seed: of the training.
        training: None where nothing was trained.
        generation: seconds; None where nothing was generated.
        signature: what decides over the scores; None without them.
        scores: by the names in `ROUGE`, 0 to 100, with 95% intervals; None where nothing was scored.
        times: None where nothing was timed.
    """

    config: str
    data: str
    corpus: Corpus | None
    scale: str
    data_hash: str | None
    commit: str
    versions: dict[str, str]
    hardware: Hardware
    seed: int
    training: Training | None
    generation: float | None
    signature: str | None
    scores: dict[str, Interval] | None
    times: Times | None


def read_results(out: Path, catalogue: list[PaperRow]) -> dict[tuple[str, str], Result]:
    """Read OUT/<data>/<config>/result.json of all rows that have one.

    Returns:
        Results by corpus and config.

    Raises:
        UserError: a file that is damaged, or is no row's.
    """
    places = {out / row.data / row.config / RESULT: (row.data, row.config) for row in catalogue}
    for path in sorted(out.glob(f"*/*/*/{RESULT}")):
        if path not in places:
            raise UserError(f"{path} must be the result of a row of paper.csv, but no row has this config and corpus.")
    return {key: read_result(path, *key) for path, key in places.items() if path.exists()}


def read_result(path: Path, data: str, config: str) -> Result:
    """Read one result file.

    Args:
        path: the file.
        data: the corpus that it must name.
        config: the config that it must name.

    Raises:
        UserError: it is no JSON object, lacks something, or holds a value that cannot be.
    """
    fields = Fields.read(path)
    fields.choice("data", (data,))
    fields.choice("config", (config,))
    hardware = fields.part("hardware")
    training = fields.optional_part("training")
    generation = fields.optional_part("generation")
    scores = fields.optional_part("scores")
    times = fields.optional_part("times")
    return Result(
        config=config,
        data=data,
        corpus=_corpus(fields.part("corpus")) if fields.has("corpus") else None,
        scale=fields.choice("scale", SCALES),
        data_hash=fields.text("data_hash") if fields.has("data_hash") else None,
        commit=fields.text("commit"),
        versions=fields.named_texts("versions"),
        hardware=Hardware(
            hardware.text("device"), hardware.count("threads", 1), hardware.count("gpus"), hardware.count("nodes", 1)
        ),
        seed=fields.count("seed"),
        training=_training(training) if training else None,
        generation=generation.number("seconds") if generation else None,
        signature=scores.text("signature") if scores else None,
        scores={name: scores.part(name).interval("mean", most=100) for name in ROUGE} if scores else None,
        times=_times(times) if times else None,
    )


def _corpus(fields: Fields) -> Corpus:
    return Corpus(fields.text("name"), fields.named_counts("documents"))


def _training(fields: Fields) -> Training:
    return Training(fields.number("seconds"), fields.count("updates"), fields.count("epochs"))


def _times(fields: Fields) -> Times:
    lengths = fields.counts("decode_tokens")
    if len(lengths) not in (0, 2):
        fields.refuse("decode_tokens", "two lengths or none", lengths)
    keys = {"train_s": "train_step"}
    keys |= {phase: f"decode_{length}" for phase, length in zip(PHASES[1:], lengths, strict=False)}
    phases = {phase: _timing(fields.part(key)) for phase, key in keys.items() if phase == "train_s" or fields.has(key)}
    return Times(
        reference=fields.text("reference"),
        repeats=fields.count("repeats", 1),
        train_batch=fields.count("train_batch", 1),
        decode_batch=fields.count("decode_batch", 1),
        precision=fields.text("precision"),
        device=fields.text("device"),
        decode_tokens=tuple(lengths) if len(phases) > 1 else (),
        phases=phases,
    )


def _timing(fields: Fields) -> Timing:
    ratio = fields.part("ratio_to_reference").interval("medians", 1e-6, 1e6)
    return Timing(fields.number("mean"), fields.number("standard_deviation"), ratio)
