"""The front matter of a model card, which the Hugging Face hub searches, and its tables of scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain
from pyramidions.base.notes import note
from pyramidions.base.optional import optional_library
from pyramidions.base.strict_json import parse_json
from pyramidions.files.bounded import read_regular
from pyramidions.files.parallel import chunks
from pyramidions.scoring import FIGURES, metric_of

# Licences that the hub knows by these names; others are called "other", with a name of their own.
_LICENCES = (
    "afl-3.0 agpl-3.0 apache-2.0 apple-ascl artistic-2.0 bigcode-openrail-m bigscience-bloom-rail-1.0 "
    "bigscience-openrail-m bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 "
    "cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 "
    "cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 "
    "cdla-permissive-2.0 cdla-sharing-1.0 creativeml-openrail-m ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 "
    "gfdl gpl gpl-2.0 gpl-3.0 isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr lppl-1.3c mit mpl-2.0 ms-pl ncsa odbl odc-by ofl-1.1 "
    "openrail openrail++ osl-3.0 pddl postgresql unlicense wtfpl zlib"
)
_COLUMNS = 5  # figures in a table


class CardScores(NamedTuple):
    """A file of scores."""

    signature: str
    systems: dict[str, dict[str, Any]]  #: the figures of each by name; the model is the first
    remarks: list[str]  #: on the model's

    @classmethod
    def read(cls, path: Path) -> "CardScores":
        """Read a file that `pyramidions score --json` wrote."""
        try:
            found = parse_json(read_regular(path))
            # A file of scores has the figures of the metrics that were known when it was written.
            first: dict[str, Any] = next(iter(found["systems"].values()), {})
            names = [name for name in first if name in FIGURES]
            figures = {
                system: {name: {key: float(means[name][key]) for key in ("mean", "low", "high")} for name in names}
                for system, means in found["systems"].items()
            }
            if not figures:
                raise ValueError
            remarks = found.get("remarks", {}).get(next(iter(figures)), [])
            return cls(str(found["signature"]), figures, list(map(str, remarks)))
        except FileNotFoundError:
            raise UserError(f"The scores {path} do not exist.") from None
        except IsADirectoryError:
            raise UserError(f"The scores {path} must be a file, but are a folder.") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path} must be as written by `pyramidions score --json`.") from None

    @property
    def of_model(self) -> dict[str, Any]:
        return next(iter(self.systems.values()))

    def tables(self) -> str:
        """Return the means with their intervals as tables in Markdown."""
        tables = []
        for names in chunks(self.of_model, _COLUMNS):
            rows = [
                (plain(system), *(_with_interval(FIGURES[name].digits, **figures[name]) for name in names))
                for system, figures in self.systems.items()
            ]
            tables.append(table(("", *(FIGURES[name].label for name in names)), rows))
        return "\n\n".join(
            [*tables, " ".join(["Means with 95% intervals.", *map(plain, [*self.remarks, self.signature])])]
        )


def _with_interval(digits: int, mean: float, low: float, high: float) -> str:
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def front_matter(
    name: str, licence: str | None, datasets: Sequence[str], scores: CardScores | None, about: Mapping[str, Any]
) -> str:
    """Return front matter with its marks and an empty line; "" with a note to the user where its library is missing.

    Scores are on the dataset, if it is one; ``about`` has further fields of `huggingface_hub.ModelCardData`.
    """
    try:
        hub = optional_library("huggingface_hub", "The front matter of the model card")
    except UserError as error:
        note(f"{error} The card is written without it.")
        return ""
    fields = {key: value for key, value in about.items() if value}
    if licence and licence.strip():
        known = "-".join(licence.lower().split())
        fields |= (
            {"license": known} if known in _LICENCES.split() else {"license": "other", "license_name": _line(licence)}
        )
    if scores is not None:
        fields["metrics"] = list(dict.fromkeys(map(metric_of, scores.of_model))) or None
        if len(datasets) == 1:
            fields["model_name"] = _line(name)
            fields["eval_results"] = [
                hub.EvalResult(
                    task_type="summarization",
                    task_name="Summarization",
                    dataset_type=datasets[0],
                    dataset_name=datasets[0],
                    metric_type=metric_of(figure),
                    metric_name=FIGURES[figure].label,
                    metric_value=round(value["mean"], FIGURES[figure].digits),
                )
                for figure, value in scores.of_model.items()
            ]
    return f"---\n{hub.ModelCardData(**{'datasets': list(datasets) or None, **fields}).to_yaml()}\n---\n\n"


def _line(text: str) -> str:
    """Return a text on one line; a name of a file may hold line breaks, control characters and bytes no UTF-8 has."""
    return "".join(filter(str.isprintable, " ".join(text.encode("utf-8", "replace").decode().split())))
