"""What benchmarks/topk.py wrote: figures 5 and 6."""

import csv
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from pyramidions.errors import UserError
from pyramidions.reproduce.results import Text, read_object, wrong_field

_Number = BeforeValidator(lambda text: text or None)  # an empty cell is None


class Point(BaseModel, allow_inf_nan=False):
    """One operator at one size.

    Attributes:
        operator: its name.
        n: vectors to choose from.
        k: vectors to select.
        seconds: of forward and backward on a batch; None if it ran out of memory.
        nccs: normalised Chamfer cosine similarity to hard top-k, at most 1; None likewise.
    """

    operator: Text
    n: int
    k: Annotated[int, Field(gt=0)]
    seconds: Annotated[float | None, Field(gt=0), _Number]
    nccs: Annotated[float | None, Field(ge=-1.001, le=1.001), _Number]

    @model_validator(mode="after")
    def _check_sizes(self) -> "Point":
        if self.k >= self.n:
            raise ValueError("Input should have k below n")
        return self


class About(BaseModel):
    """Where the points come from."""

    machine: Text
    commit: Text
    summary: Text


class TopK(NamedTuple):
    """The benchmark's points, and where they come from."""

    points: list[Point]
    about: About


def read_topk(out: Path) -> TopK | None:
    """Read OUT/topk/topk.csv and topk.json; None if there is no such CSV file.

    Raises:
        UserError: a damaged or missing file.
    """
    path = out / "topk" / "topk.csv"
    if not path.exists():
        return None
    if not path.with_suffix(".json").exists():
        raise UserError(f"{path.with_suffix('.json')} must be there beside topk.csv, to say where it comes from.")
    about = read_object(path.with_suffix(".json"), About)
    points = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                points.append(Point.model_validate(row))
    except ValidationError as error:
        found = error.errors()[0]
        wrong = wrong_field(found["loc"] or ("row",), found["type"], found["msg"], found["input"])
        raise UserError(f"{path}, line {len(points) + 2}{wrong}") from None
    except (ValueError, csv.Error):
        points = []
    if not points:
        raise UserError(f"{path} must be a CSV file as benchmarks/topk.py writes it.")
    return TopK(points, about)
