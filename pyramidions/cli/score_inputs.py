"""What `pyramidions score` reads."""

from collections.abc import Mapping
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.files.bounded import file_hash
from pyramidions.scoring.examples import FolderDocuments, Read, Texts, lead
from pyramidions.scoring.metric import Metric
from pyramidions.scoring.summaries import References, read_documents
from pyramidions.text.language import Language


class ScoreInputs:
    """References and documents, from files or else from a split of a data folder."""

    def __init__(self, data: Path | None, split: str, references: Path | None, documents: Path | None) -> None:
        self._folder = None if data is None else DataFolder(data)
        self._split = split
        self._documents = documents
        if self._folder is not None:
            references = self._folder.existing_references(split)
            if self._folder.manifest_path.exists():
                _refuse_damaged(self._folder, references)
        if references is None:
            raise UserError("Exactly one of --data and --references must be given.")
        self.references = References.read(references)

    def sources(self, metrics: Mapping[str, Metric]) -> Texts | None:
        """Return the documents, or None if no metric reads them."""
        reading = [name for name, metric in metrics.items() if metric.reads_source]
        if self._documents is not None:
            if not reading:
                raise UserError(
                    f"--documents has no effect: none of the metrics ({', '.join(metrics)}) reads documents."
                )
            return read_documents(self._documents, self.references)
        if reading and self._folder is None:
            raise UserError(f"The metric {reading[0]} reads the documents: give --documents or --data.")
        return self._whole(self._folder) if reading and self._folder else None

    def leads(self, words: int | None, language: str) -> Texts:
        """Return the first sentences of each document, of ``words`` words, or of the mean of training summaries."""
        if self._folder is None:
            raise UserError("--lead needs --data, which has the documents.")
        if words is None:
            train = self._folder.manifest["splits"].get("train")
            if train is None:
                raise UserError(f"--lead needs --lead-words, since {self._folder.path} has no train split.")
            words = round(train["target_words"]["mean"])
        documents, cut = self._whole(self._folder), Language(language)
        return Read(len(documents), lambda at: lead(documents[at], words, cut))

    def _whole(self, folder: DataFolder) -> FolderDocuments:
        _refuse_damaged(folder, folder.tokens_path(self._split, "source"), folder.tokenizer_path)
        return FolderDocuments(folder, self._split)


def _refuse_damaged(folder: DataFolder, *paths: Path) -> None:
    """Refuse files whose hash is not the manifest's: one flipped bit would give another score."""
    hashes = folder.manifest["files"]
    for path in paths:
        if path.is_file() and path.name in hashes and file_hash(path) != hashes[path.name]:
            raise UserError(f"{path} is damaged: its SHA-256 is not the one in {folder.manifest_path.name}.")
