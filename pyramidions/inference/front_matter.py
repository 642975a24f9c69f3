"""The front matter of a model card: what the Hugging Face hub searches, in YAML."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyramidions.inference.saved_model import SavedExtractor, SavedModel
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
_PLAIN = re.compile(r"[A-Za-z][\w./+-]*", re.ASCII)
# Words that YAML takes for something else, "no" for False.
_WORDS = ("true", "false", "yes", "no", "on", "off", "y", "n", "null")


def card_fields(
    model: SavedModel | SavedExtractor,
    name: str,
    scores: Mapping[str, Mapping[str, Any]] | None,
    licence: str | None,
    for_transformers: bool,
    languages: Sequence[str],
    datasets: Sequence[str],
    trained_on: str | None = None,
) -> dict[str, Any]:
    """Return what the front matter of a card says; arguments are those of `model_card`, but for two.

    Args:
        scores: figures of systems by their names, the model's first.
        trained_on: the dataset of the training data, where none is given; the scores may be on another one.
    """
    origin = model.origin if isinstance(model, SavedModel) else None
    values: dict[str, Any] = {
        "library_name": "transformers" if for_transformers else "pyramidions",
        "pipeline_tag": "summarization",
        "tags": [*_tags(model), *([origin.family] if origin else [])],
        "language": list(languages),
        **licence_fields(licence),
        "base_model": origin.source if origin and origin.on_hub else None,
        "datasets": list(datasets) or ([trained_on] if trained_on else []),
        "metrics": list(dict.fromkeys(map(metric_of, next(iter(scores.values()))))) if scores else [],
    }
    if scores and len(datasets) == 1:
        # The first system is the model; others are what it was compared with.
        first = next(iter(scores.values()))
        figures = [
            {"type": metric_of(key), "name": FIGURES[key].label, "value": round(m["mean"], 2)}
            for key, m in first.items()
        ]
        dataset = {"type": datasets[0], "name": datasets[0]}
        result = {"task": {"type": "summarization", "name": "Summarization"}, "dataset": dataset, "metrics": figures}
        values["model-index"] = [{"name": name, "results": [result]}]
    return values


def front_matter(values: Mapping[str, Any]) -> str:
    """Return front matter with its marks; values that are None or empty are left out.

    Args:
        values: texts, numbers, and lists and mappings of them.
    """
    known = {name: value for name, value in values.items() if value not in (None, "", [], {})}
    return "\n".join(["---", *_lines(known), "---"])


def licence_fields(licence: str | None) -> dict[str, str]:
    """Return the fields that say a licence: by its name on the hub, or as "other"."""
    if licence is None or not licence.strip():
        return {}
    name = "-".join(licence.lower().split())
    return {"license": name} if name in _LICENCES.split() else {"license": "other", "license_name": licence}


def _tags(model: SavedModel | SavedExtractor) -> list[str]:
    extracts = isinstance(model, SavedExtractor)
    pools = model.config.pooling_lengths is not None
    return ["long-documents", *["extractive-summarization"] * extracts, *["pooling"] * pools]


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a list or a mapping."""
    for mark, inner in _entries(value):
        if isinstance(inner, list | Mapping):
            lines = list(_lines(inner))
            if mark == "-":
                yield f"- {lines[0]}"
                yield from (f"  {line}" for line in lines[1:])
            else:
                yield mark
                yield from (f"  {line}" for line in lines)
        else:
            yield f"{mark} {_scalar(inner)}"


def _entries(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"{name}:", inner) for name, inner in value.items()]
    return [("-", inner) for inner in value]


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    # A name of a file may hold bytes that are no UTF-8, and line breaks.
    line = " ".join(value.encode("utf-8", "replace").decode().split())
    # YAML forbids most control characters.
    line = "".join(filter(str.isprintable, line))
    # Text in JSON is text in YAML, too.
    return line if _PLAIN.fullmatch(line) and line.lower() not in _WORDS else json.dumps(line, ensure_ascii=False)
