"""A row of the paper beside ours: speed-ups, which differences count, and what is missing."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyramidions.reproduce.catalogue import QUALITY_TABLES, PaperRow
from pyramidions.reproduce.fields import Interval
from pyramidions.reproduce.results import PHASES, Result, Timing


class Line(NamedTuple):
    """A row of a table or figure.

    Attributes:
        row: what the paper says.
        result: what we have; None where it was not run.
        paper_speed_ups: seconds of the row's reference over its own, by the names in `PHASES`; without what the paper
            does not time.
    """

    row: PaperRow
    result: Result | None
    paper_speed_ups: dict[str, float]

    def paper_score(self, metric: str) -> Interval | float | None:
        """The paper's ROUGE in percent: with an interval, without, or nothing; ``metric`` is "r1" or "r2"."""
        paper = self.row.paper
        if metric not in paper:
            return None
        names = (metric, f"{metric}_low", f"{metric}_high")
        return Interval(*(paper[name] for name in names)) if names[1] in paper else paper[metric]

    def our_score(self, metric: str) -> Interval | None:
        """Our ROUGE in percent; ``metric`` is "r1" or "r2"."""
        scores = self.result.scores if self.result else None
        return scores[{"r1": "rouge1", "r2": "rouge2"}[metric]] if scores else None

    def difference(self, metric: str) -> int:
        """Return 1 where our interval is above the paper's, -1 where it is below.

        0 where they overlap, where one of the two is missing, and for models that are not of the paper's size.
        """
        paper, ours = self.paper_score(metric), self.our_score(metric)
        if not isinstance(paper, Interval) or ours is None or self.result is None or self.result.scale != "paper":
            return 0
        return (ours.low > paper.high) - (ours.high < paper.low)

    def timing(self, phase: str) -> Timing | None:
        """Return what we timed; None where that was not run."""
        times = self.result.times if self.result else None
        return times.phases.get(phase) if times else None

    @property
    def is_comparable(self) -> bool:
        """Whether our times, if any, are relative to the reference that the row has."""
        times = self.result.times if self.result else None
        return times is None or times.reference == self.row.reference

    def our_speed_up(self, phase: str) -> Interval | None:
        """Return how many times faster than the reference our row is; None where that was not run with it."""
        timing = self.timing(phase)
        return timing.speed_up if timing and self.is_comparable else None

    @property
    def missing(self) -> list[str]:
        """What the row needs and has not, such as "scores: not run"; nothing where it is complete."""
        if self.result is None:
            return ["not run"]
        result, missing = self.result, []
        if self.row.table in QUALITY_TABLES and result.scores is None:
            steps = {"training": result.training, "generation": result.generation, "scores": None}
            missing += [f"{name}: not run" for name, done in steps.items() if done is None]
        timed = [phase for phase in PHASES if phase in self.row.paper]
        if self.row.table == "figure4":
            timed = ["train_s"]
        if any(self.timing(phase) is None for phase in timed):
            if result.times is None:
                missing.append("times: not run")
            else:
                missing.append("times of decoding: not run")
        elif timed and not self.is_comparable and result.times is not None:
            missing.append(f"times: relative to {result.times.reference}, not to {self.row.reference}")
        return missing

    @property
    def status(self) -> str:
        """Return "run", or what is missing."""
        return "; ".join(self.missing) or "run"


def compare(catalogue: Sequence[PaperRow], results: Mapping[tuple[str, str], Result]) -> list[Line]:
    """Return every row of the catalogue with our result, in its order."""
    found = {(row.data, row.config): row for row in reversed(catalogue)}
    lines = []
    for row in catalogue:
        reference = found.get((row.data, row.reference))
        speed_ups = {
            phase: reference.paper[phase] / row.paper[phase]
            for phase in PHASES
            if reference and phase in row.paper and phase in reference.paper
        }
        lines.append(Line(row, results.get((row.data, row.config)), speed_ups))
    return lines
