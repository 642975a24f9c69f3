"""Where the files of a run lie."""

from pathlib import Path
from typing import NamedTuple

from pyramidions.base.errors import UserError


class Places(NamedTuple):
    """Where the files of a run lie.

    Attributes:
        model: the export, which appears in the end.
        work: everything else; training can go on from it by hand.
        state: what is done.
        documents: the splits, where some were held out.
        data: the prepared documents.
        checkpoints: what fairseq-train saves.
        train_log: what it prints.
        summaries: those of the test split, as fairseq-generate writes them.
        scores: all figures.
        table: the scores as one reads them.
        papers: documents as a model of concepts reads them.
        fitted: a model of concepts.
        references: the summaries of the test split, where the data folder has none.
    """

    model: Path
    work: Path
    state: Path
    documents: Path
    data: Path
    checkpoints: Path
    train_log: Path
    summaries: Path
    scores: Path
    table: Path
    papers: Path
    fitted: Path
    references: Path

    @classmethod
    def of(cls, model: Path) -> "Places":
        """Return the places for an export.

        Raises:
            UserError: the path has no name of its own, so that nothing can lie beside it under the same name.
        """
        if model.name in ("", ".."):
            raise UserError(f"MODEL must end in the name of a folder to make, but is {model}.")
        work = model.with_name(f"{model.name}.work")
        folders = ("run.json", "documents", "data", "checkpoints")
        files = ("train.log", "generate-test.txt", "scores.json", "scores.txt")
        more = ("papers", "fitted", "references.jsonl")
        return cls(model, work, *(work / name for name in (*folders, *files, *more)))

    @property
    def best(self) -> Path:
        """The best model so far."""
        return self.checkpoints / "checkpoint_best.pt"

    @property
    def last(self) -> Path:
        """What a training goes on from."""
        return self.checkpoints / "checkpoint_last.pt"
