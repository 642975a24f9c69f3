"""`pyramidions options`."""

import json
import shutil
import textwrap
from argparse import SUPPRESS
from dataclasses import MISSING, fields
from importlib.util import find_spec
from typing import Any, NamedTuple, Union, get_args, get_origin

import click

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError

_WIDEST = 120
_SUMMARIZES = {"task": "--task long_document_summarization", "criterion": "--criterion pooled_cross_entropy"}
_EXTRACTS = {"task": "--task extractive_summarization", "criterion": "--criterion extractive_summarization"}
_PREDICTS = {"task": "--task character_language_modeling", "criterion": "--criterion boundary_cross_entropy"}


class Option(NamedTuple):
    """An option of a model, task or criterion.

    Attributes:
        part: "model", "task" or "criterion": its group in hydra.
        name: hydra's name for it, "embed_dim".
        kind: of its value: "int", "float", "text", or "switch", which takes none.
        value: its default; None if it has none.
        meaning: its help.
    """

    part: str
    name: str
    kind: str
    value: Any
    meaning: str

    @property
    def flag(self) -> str:
        """The flag of fairseq-train; the data folder has none."""
        return "DATA" if self.name == "data" else flag_of(self.name)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        hydra = f"{self.part}.{self.name}"
        return {
            "part": self.part,
            "flag": self.flag,
            "hydra": hydra,
            "type": self.kind,
            "value": self.value,
            "meaning": self.meaning,
        }


@click.command(short_help="List every option of model, task and criterion.")
@click.argument("arch", default="pyramidion")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
def options(arch: str, as_json: bool) -> None:
    """List every option of the model, the task and the criterion: its flag, type, value and meaning.

    Values are those of the preset ARCH (fairseq's --arch), by default "pyramidion". fairseq-train takes the flags, and
    fairseq-hydra-train takes PART.NAME=VALUE, with underscores: model.embed_dim=64. The options of task and criterion
    need fairseq, which takes some seconds to import. `fairseq-train --help` lists fairseq's own options.

    \b
    Example:
      pyramidions options deep_pyramidion
      pyramidions options extractor
      pyramidions options hourglass_gumbel
      pyramidions options deep_pyramidion --json
    """
    from pyramidions.models import (
        EXTRACTOR_PRESETS,
        LANGUAGE_MODEL_PRESETS,
        PRESETS,
        extractor_preset,
        language_model_preset,
        preset,
    )

    if arch not in (names := (*PRESETS, *EXTRACTOR_PRESETS, *LANGUAGE_MODEL_PRESETS)):
        raise UserError(f"ARCH must be one of {', '.join(names)}, but is {arch!r}.")
    if arch in EXTRACTOR_PRESETS:
        found, parts = _options("model", extractor_preset(arch)), _EXTRACTS
    elif arch in LANGUAGE_MODEL_PRESETS:
        found, parts = _options("model", language_model_preset(arch)), _PREDICTS
    else:
        found, parts = _options("model", preset(arch)), _SUMMARIZES
    has_fairseq = find_spec("fairseq") is not None
    if has_fairseq:
        found += [option for part, config in _of_fairseqs_parts(parts).items() for option in _options(part, config)]
    if as_json:
        click.echo(json.dumps([option.as_json() for option in found], indent=1))
    else:
        titles = {"model": f"--arch {arch}", **parts}
        click.echo(_table(found, titles, min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)))
    if not has_fairseq:
        click.echo("fairseq is not installed: the options of task and criterion are not listed.", err=True)


def _of_fairseqs_parts(parts: dict[str, str]) -> dict[str, Any]:
    """Return the configs of the task and the criterion that a kind of model is trained with, and what it records."""
    from pyramidions.plugin.criterions.boundary_cross_entropy import BoundaryCrossEntropyConfig
    from pyramidions.plugin.criterions.extractive_summarization import ExtractiveSummarizationCriterionConfig
    from pyramidions.plugin.criterions.pooled_cross_entropy import PooledCrossEntropyConfig
    from pyramidions.plugin.models.architectures import RecordedConfig
    from pyramidions.plugin.tasks.config import (
        CharacterLanguageModelingConfig,
        ExtractiveSummarizationConfig,
        LongDocumentSummarizationConfig,
    )

    found: dict[str, Any] = {"model": RecordedConfig()}
    if parts is _PREDICTS:
        return found | {"task": CharacterLanguageModelingConfig(), "criterion": BoundaryCrossEntropyConfig()}
    if parts is _EXTRACTS:
        extraction = ExtractiveSummarizationCriterionConfig()
        return found | {"task": ExtractiveSummarizationConfig(), "criterion": extraction}
    return found | {"task": LongDocumentSummarizationConfig(), "criterion": PooledCrossEntropyConfig()}


def _options(part: str, config: Any) -> list[Option]:
    """Return the options of a config, whose fields hold a preset's values."""
    found = []
    task = part == "task"
    for field in fields(config):
        value = getattr(config, field.name)
        # Options taken from another part are listed there, or are fairseq's own; those without a help are none.
        taken_over = field.name == "max_source_positions" and not task
        unlisted = field.metadata.get("help", SUPPRESS) == SUPPRESS
        if field.name.startswith("_") or taken_over or str(value).startswith("${") or unlisted:
            continue
        value = None if value is MISSING or value == "???" else value
        found.append(Option(part, field.name, _kind(field.type), value, field.metadata["help"]))
    return found


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Union:
        annotation = get_args(annotation)[0]
    return {bool: "switch", str: "text"}.get(annotation, annotation.__name__)


def _table(found: list[Option], titles: dict[str, str], width: int) -> str:
    """Return a block of lines for each part under its title, the meanings wrapped in the last column."""
    flags = max(len(option.flag) for option in found)
    kinds = max(len(option.kind) for option in found)
    # A value too long for its column has a line of its own.
    values = max(len(shown) for option in found if len(shown := _shown(option.value)) <= 14)
    start = flags + kinds + values + 6
    blocks = []
    for part in dict.fromkeys(option.part for option in found):
        lines = [f"{part} ({titles[part]})"]
        for option in (option for option in found if option.part == part):
            shown = _shown(option.value)
            head = f"{option.flag:{flags}}  {option.kind:{kinds}}  "
            meaning = textwrap.wrap(option.meaning, max(width - start, 24), break_on_hyphens=False) or [""]
            if len(shown) > values:
                lines.append(f"{head}{shown}")
                head, shown = " " * len(head), ""
            lines.append(f"{head}{shown:{values}}  {meaning[0]}")
            lines += [" " * start + rest for rest in meaning[1:]]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "-" if value is None else str(value)
