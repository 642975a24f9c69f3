"""A row of the paper and ours: speed-ups, significant differences, and what is missing."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lab.catalogue import QUALITY_TABLES, PaperRow, rows_of
from lab.results import PHASES, Interval, Result, Timing

#: Documents for training and testing of the papers' corpora (Cohan et al. 2018, Huang et al. 2021).
PAPER_DOCUMENTS = {"arxiv": (203_037, 6_440), "pubmed": (119_924, 6_658), "govreport": (17_517, 973)}
#: Why a figure of the paper cannot be compared with ours.
OBSTACLES = frozenset({"tiny model", "small model", "other data"})
_NEAR = 0.02  # how much fewer they may be; empty ones are left out


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
        """The paper's ROUGE in percent: with an interval, without, or nothing; ``metric`` is "r1", "r2" or "rl"."""
        paper = self.row.paper
        if metric not in paper:
            return None
        names = (metric, f"{metric}_low", f"{metric}_high")
        return Interval(*(paper[name] for name in names)) if names[1] in paper else paper[metric]

    def our_score(self, metric: str) -> Interval | None:
        """Our ROUGE in percent; ``metric`` is "r1", "r2" or "rl", the summary-level ROUGE-L."""
        scores = self.result.scores if self.result else None
        return {"r1": scores.rouge1, "r2": scores.rouge2, "rl": scores.rougeLsum}[metric] if scores else None

    def difference(self, metric: str) -> int:
        """Return 1 where our interval is above the paper's, -1 where it is below.

        0 where they overlap, where one of the two is missing, and where they are not comparable.
        """
        paper, ours = self.paper_score(metric), self.our_score(metric)
        if not isinstance(paper, Interval) or ours is None or self.score_obstacle:
            return 0
        return (ours.low > paper.high) - (ours.high < paper.low)

    def timing(self, phase: str) -> Timing | None:
        """Return what we timed; None where that was not run."""
        times = self.result.times if self.result else None
        return times.phases.get(phase) if times else None

    @property
    def time_obstacle(self) -> str:
        """Why our times cannot be compared with the paper's, in two words; empty if they can."""
        return f"{self.result.scale} model" if self.result is not None and self.result.scale != "paper" else ""

    @property
    def score_obstacle(self) -> str:
        """Why our ROUGE cannot be compared with the paper's, in two words; empty if it can."""
        if self.result is None or self.time_obstacle:
            return self.time_obstacle
        return "" if has_papers_data(self.result) else "other data"

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
        if not self.row.config:
            return []
        result = self.result
        if result is None:
            return ["not run"]
        missing = []
        if self.row.table in QUALITY_TABLES and result.scores is None:
            needed = {"training": result.training, "generation": result.generation, "scores": None}
            missing += [f"{name}: not run" for name, part in needed.items() if part is None]
        timed = ["train_s"] if self.row.table == "figure4" else [phase for phase in PHASES if phase in self.row.paper]
        if any(self.timing(phase) is None for phase in timed):
            missing.append(f"times{' of decoding' if result.times else ''}: not run")
        elif timed and result.times and not self.is_comparable:
            missing.append(f"times: relative to {result.times.reference}, not to {self.row.reference}")
        return missing

    @property
    def status(self) -> str:
        """Return "run", what is missing, or "published only" where we have no such model."""
        return "; ".join(self.missing) or ("run" if self.row.config else "published only")


def has_papers_data(result: Result) -> bool:
    """Whether a row was trained and tested on about as many documents as the paper's corpus has."""
    if result.corpus is None or result.data not in PAPER_DOCUMENTS:
        return False
    counts = (result.corpus.documents.get(split, 0) for split in ("train", "test"))
    return all((1 - _NEAR) * of <= n <= of for n, of in zip(counts, PAPER_DOCUMENTS[result.data], strict=True))


def shown(lines: Sequence[Line], table: str) -> list[Line]:
    """Return the rows of a table or figure that something was measured for.

    Rows that were only timed stand in no table of ROUGE; figure 4, which shares rows with table 2, is shown where
    something was timed for it. Rows that are only published stand beside those that ours can be compared with.
    """
    of_table = [line for line in lines if line.row in rows_of([line.row], table)]
    members = [line for line in of_table if line.result is not None]
    trained = [line for line in members if line.result and (line.result.training or line.result.scores)]
    if table == "figure4":
        return members if len(trained) < len(members) else []
    if table == "table10":
        return [line for line in members if line.timing("train_s")]
    comparable = any(not line.score_obstacle for line in trained)
    return [line for line in of_table if line in trained or (comparable and not line.row.config)]


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
