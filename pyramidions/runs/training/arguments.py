"""What a run was asked for."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pyramidions.data.readers import Corpus, known_fields
from pyramidions.runs.training.sources import near


@dataclass(frozen=True)
class Arguments:
    """What a run was asked for; the names are those of the command's options.

    Args:
        documents: a folder or a file, absolute, or the name of a Hugging Face dataset.
        kind: "auto", or a name in `KINDS`.
        hours: most hours of training; None for as many as the recipe takes.
        gpus: that train; 0 for the CPU, None for all that there are.
        source_field, target_field, id_field, config, skip_empty, number_repeated_ids, query_field: as for
            `pyramidions prepare`.
        vocab_size: number of pieces; None for one that suits the corpus.
        seed: of the training.
    """

    documents: str
    kind: str = "auto"
    hours: float | None = None
    gpus: int | None = None
    source_field: str | None = None
    target_field: str | None = None
    id_field: str | None = None
    config: str | None = None
    skip_empty: bool = False
    number_repeated_ids: bool = False
    vocab_size: int | None = None
    seed: int = 1
    query_field: str | None = None

    def corpus(self, name: str, split: str, *, sections: bool) -> Corpus:
        """Return the documents of a split.

        Args:
            name: of the input.
            split: `train`, `valid` or `test`.
            sections: take documents from the sections of their records, as `pyramidions extract` does.
        """
        return Corpus(
            near(name),
            split,
            fields=known_fields(self.source_field, self.target_field, self.id_field, self.query_field),
            config=self.config,
            skip_empty=self.skip_empty,
            number_repeated_ids=self.number_repeated_ids,
            sections=sections,
        )

    def difference(self, recorded: dict[str, Any]) -> str | None:
        """Return in words the first argument in which a recorded run differs; None if there is none."""
        for field in fields(self):
            before, now = recorded.get(field.name), asdict(self)[field.name]
            if before != now:
                return f"{_option(field.name)} was {_shown(before)}, and is {_shown(now)}"
        return None


def absolute(documents: str) -> str:
    """Return a path as an absolute one, and the name of a dataset as it is."""
    return str(Path(documents).absolute()) if Path(documents).exists() else documents


def _option(name: str) -> str:
    return "DOCUMENTS" if name == "documents" else f"--{name.replace('_', '-')}"


def _shown(value: object) -> str:
    return {"None": "not given", "False": "not given", "True": "given"}.get(str(value), str(value))
