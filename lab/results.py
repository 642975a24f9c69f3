"""What `python -m lab reproduce` writes for each row, result.json: its fields and their rules."""

import re
import reprlib
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from lab.catalogue import PaperRow
from pyramidions.errors import UserError

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
    """Seconds over the turns, and their ratio to those of the reference in the same run.

    The interval of the ratio has the lowest and highest of two neighbouring turns.
    """

    mean: Seconds
    standard_deviation: Seconds
    ratio_to_reference: Annotated[Interval, AfterValidator(_divides)]

    @property
    def speed_up(self) -> Interval:
        """How many times faster than the reference; above 1 is faster."""
        ratio = self.ratio_to_reference
        return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


class Times(_Part):
    """How a row was timed, in turns with the config ``reference``; "decode_256" is a field where that was timed.

    ``decode_tokens`` are the two lengths that stand for the paper's 256 and 512 tokens, or none.
    """

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
    def phases(self) -> dict[str, Timing]:
        """What was timed, by the names in `PHASES`."""
        found = {"train_s": self.train_step}
        for phase, tokens in self.tokens.items():
            if timing := self.__pydantic_extra__.get(f"decode_{tokens}"):
                found[phase] = timing
        return found

    @property
    def tokens(self) -> dict[str, int]:
        """How many tokens stand for the paper's in each phase of decoding."""
        return dict(zip(PHASES[1:], self.decode_tokens, strict=False))

    @property
    def decoded(self) -> list[int]:
        """The lengths that were timed."""
        return [tokens for tokens in self.decode_tokens if f"decode_{tokens}" in self.__pydantic_extra__]


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
        return {name: getattr(self, name) for name in ROUGE} | self.further

    @property
    def further(self) -> dict[str, Interval]:
        """The figures beside ROUGE."""
        return self.__pydantic_extra__


#: The figures that all scores have.
ROUGE = tuple(name for name in Scores.model_fields if name != "signature")


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
    """The best value of the metric by which a training chose its checkpoint."""

    metric: str
    value: Annotated[float, Field(allow_inf_nan=True)]


class Training(Generation):
    """How long a training took, and how well it went; ``best`` is None before the first validation."""

    updates: Count
    epochs: Count
    best: Best | None = None


class Start(Training):
    """A training that a row began with, and what it ran on."""

    hardware: Hardware


class Memory(_Part):
    """Peak memory of the training: what the process had on the CPU, or what it allocated on its first GPU."""

    bytes: Positive
    of: Literal["process", "gpu"]


class Losses(_Part):
    """Nats a token of the summaries of a split: with their own document, with another, and the difference."""

    split: str
    own: Interval
    another: Interval
    cost: Interval


class Corpus(_Part):
    """The prepared folder that a row was trained and tested on: its name, and its documents by split."""

    name: str
    documents: dict[str, Count]


class Result(_Part):
    """One result file; None is what was not run.

    Attributes:
        config: the row's file among the configs, without ".yaml".
        data: the corpus of the paper's row; ``corpus`` is what stood for it, None in files of earlier versions too.
        data_hash: of the prepared corpus.
        commit: of the code.
        versions: of Python and packages.
        seed: of the training.
        start: what the training began with. The training's seconds already include it, its updates do not.
    """

    config: str
    data: str
    corpus: Corpus | None = None
    scale: Literal["paper", "small", "tiny"]
    data_hash: str | None = None
    commit: str
    versions: dict[str, str]
    hardware: Hardware
    seed: Count
    start: Start | None = None
    training: Training | None
    memory: Memory | None = None
    losses: Losses | None = None
    generation: Generation | None
    scores: Scores | None
    times: Times | None


class TopK(_Part):
    """Where figures 5 and 6 come from, and what they say."""

    machine: str
    commit: str
    summary: str


def read_results(out: Path, catalogue: list[PaperRow]) -> dict[tuple[str, str], Result]:
    """Read OUT/<data>/<config>/result.json of all rows that have one.

    Returns:
        Results by corpus and config.

    Raises:
        UserError: a file is damaged, or belongs to no row.
    """
    places = {out / row.data / row.config / "result.json": (row.data, row.config) for row in catalogue if row.config}
    for path in sorted((*out.glob("*/*/*/result.json"), *out.glob("*/*/*/seed-*/result.json"))):
        if path not in places and path.parents[1] / path.name not in places:
            raise UserError(f"{path} must be the result of a row of paper.csv, but no row has this config and corpus.")
    return {key: read_result(path, *key) for path, key in places.items() if path.exists()}


def read_result(path: Path, data: str, config: str) -> Result:
    """Read one result file, which must name this corpus and config.

    Raises:
        UserError: the file is damaged, or names something else.
    """
    result = read_object(path, Result)
    for name, expected in (("data", data), ("config", config)):
        if (value := getattr(result, name)) != expected:
            raise UserError(f"{path}: `{name}` must be {expected}, but is {value!r}.")
    return result


def check_scale(out: Path, scale: str) -> None:
    """Refuse a folder with results of another scale.

    Raises:
        UserError: there is one, or a result is damaged.
    """
    for path in sorted((*out.glob("*/*/*/result.json"), *out.glob("*/*/*/seed-*/result.json"))):
        if (found := read_object(path, Result).scale) != scale:
            raise UserError(f"--out must hold results of the scale {scale} only, but {path} is of the scale {found}.")


def read_topk(out: Path) -> TopK | None:
    """Read OUT/topk/topk.json, which benchmarks/topk.py writes beside its picture; None if there is no picture.

    Raises:
        UserError: a damaged or missing file.
    """
    path = out / "topk" / "topk.json"
    if not path.with_suffix(".png").exists():
        return None
    if not path.exists():
        raise UserError(f"{path} must be there beside topk.png, to say where it comes from, but is not.")
    return read_object(path, TopK)


def read_object(path: Path, model: type[_Model]) -> _Model:
    """Read a JSON object from a file.

    Raises:
        UserError: the file holds no such object; the sentence names the first field that is wrong.
    """
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
