"""Where the files of a run lie."""

from pathlib import Path

from pyramidions.base.errors import UserError


class Places:
    """Where the files of a run lie.

    Args:
        model: the export, which appears in the end.

    Raises:
        UserError: the path has no name of its own, so that nothing can lie beside it under the same name.
    """

    def __init__(self, model: Path) -> None:
        if model.name in ("", ".."):
            raise UserError(f"MODEL must end in the name of a folder to make, but is {model}.")
        self.model = model
        #: everything but the export; training can go on from it by hand
        self.work = work = model.with_name(f"{model.name}.work")
        self.state = work / "run.json"  #: what is done
        self.documents = work / "documents"  #: the splits, where some documents were held out
        self.data = work / "data"  #: the prepared documents
        self.checkpoints = work / "checkpoints"  #: what fairseq-train saves
        self.best = self.checkpoints / "checkpoint_best.pt"  #: the best model so far
        self.last = self.checkpoints / "checkpoint_last.pt"  #: what a training goes on from
        self.train_log = work / "train.log"  #: what fairseq-train prints
        self.papers = work / "papers"  #: documents as a model of concepts reads them
        self.fitted = work / "fitted"  #: a model of concepts
        self.references = work / "references.jsonl"  #: summaries of the test split, where no data folder has them
        self.summaries = work / "generate-test.txt"  #: those of the test split, as fairseq-generate writes them
        self.scores = work / "scores.json"  #: all figures
        self.table = work / "scores.txt"  #: the scores as one reads them
