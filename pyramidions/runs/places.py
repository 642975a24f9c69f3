"""Where the files of a run lie."""

from pathlib import Path
from typing import NamedTuple

from pyramidions.base.errors import UserError


class Places(NamedTuple):
    """Where the files of a run lie.

    Attributes:
        model: the export, which appears in the end.
        work: everything else; training can go on from it by hand.
    """

    model: Path
    work: Path

    @classmethod
    def of(cls, model: Path) -> "Places":
        """Return the places for an export.

        Raises:
            UserError: the path has no name of its own, so that nothing can lie beside it under the same name.
        """
        if model.name in ("", ".."):
            raise UserError(f"MODEL must end in the name of a folder to make, but is {model}.")
        return cls(model, model.with_name(f"{model.name}.work"))

    @property
    def state(self) -> Path:
        """What is done."""
        return self.work / "run.json"

    @property
    def documents(self) -> Path:
        """The splits, where some documents were held out."""
        return self.work / "documents"

    @property
    def data(self) -> Path:
        """The prepared documents."""
        return self.work / "data"

    @property
    def checkpoints(self) -> Path:
        """What fairseq-train saves."""
        return self.work / "checkpoints"

    @property
    def best(self) -> Path:
        """The best model so far."""
        return self.checkpoints / "checkpoint_best.pt"

    @property
    def last(self) -> Path:
        """What a training goes on from."""
        return self.checkpoints / "checkpoint_last.pt"

    @property
    def train_log(self) -> Path:
        """What fairseq-train prints."""
        return self.work / "train.log"

    @property
    def papers(self) -> Path:
        """Documents as a model of concepts reads them."""
        return self.work / "papers"

    @property
    def fitted(self) -> Path:
        """A model of concepts."""
        return self.work / "fitted"

    @property
    def references(self) -> Path:
        """The summaries of the test split, where no data folder has them."""
        return self.work / "references.jsonl"

    @property
    def summaries(self) -> Path:
        """Those of the test split, as fairseq-generate writes them."""
        return self.work / "generate-test.txt"

    @property
    def scores(self) -> Path:
        """All figures."""
        return self.work / "scores.json"

    @property
    def table(self) -> Path:
        """The scores as one reads them."""
        return self.work / "scores.txt"
