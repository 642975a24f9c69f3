"""result.json, which `reproduce` writes for each row and seed: its fields, their rules, and the runs in a folder."""

import json
import re
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import pandas as pd
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from lab.catalogue import PaperRow
from pyramidions.base.errors import UserError

#: The paper's names of what is timed; the second and third stand for the first and second of `Times.decode_tokens`.
PHASES = ("train_s", "infer256_s", "infer512_s")
_RULES = ConfigDict(strict=True, allow_inf_nan=False)
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, config=_RULES)
class Interval:
    """A value, which files call a mean or a ratio of medians, and the interval around it."""

    value: Annotated[float, Field(validation_alias=AliasChoices("mean", "medians"))]
    low: float
    high: float


def _divides(interval: Interval) -> Interval:
    if min(interval.low, interval.value, interval.high) <= 0:
        raise ValueError("Input should be above 0")
    return interval


Seconds = Annotated[float, Field(ge=0, le=1e12)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(**_RULES, frozen=True)


class Timing(_Part):
    """Seconds over the turns; the interval of the ratio has the lowest and highest of two neighbouring turns."""

    mean: Seconds
    standard_deviation: Seconds
    ratio_to_reference: Annotated[Interval, AfterValidator(_divides)]

    @property
    def speed_up(self) -> Interval:
        """How many times faster than the reference."""
        ratio = self.ratio_to_reference
        return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


class Times(_Part):
    """How a row was timed, in turns with the config ``reference``; "decode_256" is a field where that was timed."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Timing]
    reference: str
    repeats: Positive
    train_batch: Positive
    decode_batch: Positive
    precision: str
    device: str
    decode_tokens: Annotated[list[Positive], Field(max_length=2)]
    train_step: Timing

    @property
    def settings(self) -> dict[str, Any]:
        """How all rows were timed."""
        return self.model_dump(include={"repeats", "train_batch", "decode_batch", "decode_tokens", "precision"})

    @property
    def phases(self) -> dict[str, Timing]:
        """What was timed, by the names in `PHASES`."""
        decoded = zip(PHASES[1:], self.decode_tokens, strict=False)
        found = {phase: self.__pydantic_extra__.get(f"decode_{tokens}") for phase, tokens in decoded}
        return {PHASES[0]: self.train_step, **{phase: timing for phase, timing in found.items() if timing}}


class Scores(_Part):
    """ROUGE, any other figures that were asked for, and the signature of how all were computed."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Interval]
    signature: str
    rouge1: Interval
    rouge2: Interval
    rougeL: Interval  # noqa: N815  (its name in the files)
    rougeLsum: Interval  # noqa: N815

    @property
    def figures(self) -> dict[str, Interval]:
        """All figures by their names, ROUGE first."""
        ours = {name: getattr(self, name) for name in type(self).model_fields if name != "signature"}
        return ours | self.__pydantic_extra__


class Hardware(_Part):
    """The device's name, threads of a process, GPUs of each machine (0 for the CPU), and machines."""

    device: str
    threads: Positive
    gpus: Count
    nodes: Positive


class Generation(_Part):
    """How long generation took."""

    seconds: Seconds


class Best(_Part):
    """The best value of the metric that chose a training's checkpoint."""

    metric: str
    value: Annotated[float, Field(allow_inf_nan=True)]


class Training(Generation):
    """How long a training took, and how well it went; ``best`` is None before the first validation."""

    updates: Count
    epochs: Count
    best: Best | None = None


class Memory(_Part):
    """Peak memory of the training: what the process had on the CPU, or what it allocated on its first GPU."""

    bytes: Positive
    of: Literal["process", "gpu"]


class Losses(_Part):
    """Nats a token of the summaries of a split: with their own document, with another, and the difference.

    With a pointer, `copied` is the share of the summaries that is probably copied.
    """

    split: str
    own: Interval
    another: Interval
    cost: Interval
    copied: Interval | None = None


class Language(_Part):
    """What a language model has: bits per character of the test split, and characters per segment of the valid one."""

    bpc: Annotated[float, Field(ge=0)]
    shortening_factor: Annotated[float, Field(ge=0)] | None = None


class Corpus(_Part):
    """The prepared folder that a row was trained and tested on: its name, and its documents by split."""

    name: str
    documents: dict[str, Count]


class Result(_Part):
    """One result file; None is what was not run. `corpus` stood for the corpus of the paper's row, `data`."""

    config: str
    data: str
    corpus: Corpus | None = None
    scale: Literal["paper", "small", "tiny"]
    data_hash: str | None = None
    commit: str
    versions: dict[str, str]
    hardware: Hardware
    seed: Count
    training: Training | None
    memory: Memory | None = None
    losses: Losses | None = None
    language: Language | None = None
    generation: Generation | None
    scores: Scores | None
    times: Times | None


class TopK(_Part):
    """Where figures 5 and 6 come from, and what they say."""

    machine: str
    versions: str = ""
    commit: str
    summary: str


class Run(NamedTuple):
    """A result file: its row, its seed where rows are trained for several, and its folder."""

    row: PaperRow
    seed: int | None
    folder: Path
    result: Result


def read_runs(out: Path, catalogue: Sequence[PaperRow]) -> list[Run]:
    """Read OUT/<data>/<config>/result.json and those of seeds, OUT/<data>/<config>/seed-N/result.json.

    They are in the order of the catalogue and of the seeds' numbers.

    Raises:
        UserError: a damaged result, or one of another row or seed.
    """
    rows = {f"{row.data}/{row.config}": row for row in reversed(catalogue) if row.config}
    runs = []
    for path in _result_files(out):
        seeded = re.fullmatch(r"(.+)/seed-(\d+)", path.parent.relative_to(out).as_posix())
        name, seed = (seeded[1], int(seeded[2])) if seeded else (path.parent.relative_to(out).as_posix(), None)
        if name not in rows:
            raise UserError(f"{path} must be the result of a row of paper.csv, but no row has this config and corpus.")
        row, result = rows[name], read_object(path, Result)
        expected = {"data": row.data, "config": row.config, **({} if seed is None else {"seed": seed})}
        for field, value in expected.items():
            if (found := getattr(result, field)) != value:
                raise UserError(f"{path}: `{field}` must be {value}, but is {found!r}.")
        runs.append(Run(row, seed, path.parent, result))
    order = {id(row): place for place, row in enumerate(catalogue)}
    return sorted(runs, key=lambda run: (order[id(run.row)], run.seed or 0))


def _result_files(out: Path) -> list[Path]:
    return sorted((*out.glob("*/*/*/result.json"), *out.glob("*/*/*/seed-*/result.json")))


def read_documents(path: Path, names: Sequence[str]) -> pd.DataFrame:
    """Read figures, (documents, names), from what `pyramidions loss` or `score` wrote; of a score, the first system."""
    try:
        documents: Any = json.loads(path.read_bytes())["documents"]
        found: dict[str, dict[str, float]] = {}
        for each in documents:
            numbers = each if names[0] in each else next(of for key, of in each.items() if key != "id")
            found[str(each["id"])] = {name: float(numbers[name]) for name in names}
    except FileNotFoundError:
        raise UserError(f"{path} must be there beside result.json, which tells of it, but is not.") from None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
        raise UserError(f"{path} must hold the {' and '.join(names)} of each document, but does not.") from None
    return pd.DataFrame.from_dict(found, orient="index")


def check_scale(out: Path, scale: str) -> None:
    """Refuse a folder with results of another scale."""
    for path in _result_files(out):
        if (found := read_object(path, Result).scale) != scale:
            raise UserError(f"--out must hold results of the scale {scale} only, but {path} is of the scale {found}.")


def read_topk(out: Path) -> TopK | None:
    """Read OUT/topk/topk.json, which lab/benchmarks/topk.py writes beside its picture; None if there is no picture."""
    path = out / "topk" / "topk.json"
    if not path.with_suffix(".png").exists():
        return None
    if not path.exists():
        raise UserError(f"{path} must be there beside topk.png, to say where it comes from, but is not.")
    return read_object(path, TopK)


def read_object(path: Path, model: type[_Model]) -> _Model:
    """Read a JSON object from a file."""
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        found = error.errors()[0]
    if not found["loc"]:
        raise UserError(f"{path} must hold one JSON object, but does not.")
    name = ".".join(map(str, found["loc"]))
    if found["type"] == "missing":
        raise UserError(f"{path} lacks `{name}`.")
    rule = re.sub(r"^(Value error, )?\w+ should", "must", found["msg"])
    raise UserError(f"{path}: `{name}` {rule}, but is {reprlib.repr(found['input'])}.")
