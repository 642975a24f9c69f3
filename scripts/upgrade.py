"""Rewrites a model that 0.1.0, 0.2.0 or a development version of 0.3 saved, so that today's release reads it.

The model computes what it did, and a checkpoint goes on training with the state of its optimizer.
"""

import argparse
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from pyramidions.base.arguments import flag_of, shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, Parts, changed, parse_parts, written_parts
from pyramidions.base.strict_json import as_json_bytes, parse_json
from pyramidions.files.atomic import atomic_file
from pyramidions.inference import export_model
from pyramidions.models import (
    ExtractorConfig,
    LanguageModelConfig,
    PyramidionConfig,
    build,
    build_extractor,
    build_language_model,
)
from pyramidions.models.builder import shapes_alone
from pyramidions.models.config import config_as
from pyramidions.models.fields import part_fields
from pyramidions.models.formats import ARCHITECTURES, FORMAT
from pyramidions.models.training import freeze
from pyramidions.pretrained.checkpoint_file import check_weights, load_safely
from pyramidions.pretrained.export_folder import TOKENIZERS, WEIGHTS
from pyramidions.pretrained.model_kinds import KINDS, SUMMARIZER
from pyramidions.pretrained.places import CARD, CONFIG, check_hashes, read_json
from pyramidions.pretrained.saved_model import load_any
from pyramidions.pretrained.source import read_weights
from pyramidions.text.tokenizer import PAD

EXAMPLE = """example:
  python scripts/upgrade.py checkpoints/checkpoint_best.pt upgraded.pt
  python scripts/upgrade.py exported upgraded"""
#: of checkpoints that record none, by 0.1.0 and 0.2.0
UNRECORDED = 2

# Until 0.2.0 the options of a part were JSON in a field of their own: `self_attention_args` those of `self_attention`.
# Layers had commas in between.
ENDING = "_args"


def translated(values: Mapping[str, Any], defaults: Mapping[str, Any], several: bool) -> dict[str, Any]:
    """Return the fields that name parts, with their options, in today's language.

    Args:
        values: fields by name, in either language.
        defaults: the fields that name parts, with what they are if not given.
        several: the decoder reads several memories.
    """
    found = {}
    for name, default in defaults.items():
        kinds, options = values.get(name, default), values.get(f"{name}{ENDING}")
        if isinstance(kinds, str) and (name in values or options is not None):
            # Who changed such a config by hand wrote today's language.
            has_own = "(" in kinds
            options = None if has_own else options
            is_old = not has_own and ("," in kinds or options is not None)
            found[name] = _part_text(name, kinds, options or "{}", several) if is_old else kinds
    return found


def _part_text(name: str, text: str, options: str, several: bool) -> str:
    if "," in text:
        kinds: Parts = [[Part(kind.strip()) for kind in memory.split(",")] for memory in text.split(";")]
    else:
        kinds = parse_parts(name, text)
    try:
        given = parse_json(options)
    except ValueError as error:
        raise UserError(f"`{name}{ENDING}` must be a JSON object, but {error}: {shown(options)}.") from None
    # Of several memories, options are those of all, or a list of those of each.
    listed = given if several and name == "cross_attention" and isinstance(given, list) else [given]
    count = max(len(kinds), len(listed))
    memories = zip(_spread(kinds, count, name), _spread(listed, count, name), strict=True)
    return written_parts([_memory(memory, own, name) for memory, own in memories])


def _memory(kinds: list[Part], options: Any, name: str) -> list[Part]:
    listed = options if isinstance(options, list) else [options]
    if not all(isinstance(each, dict) for each in listed):
        raise UserError(f"`{name}{ENDING}` must be a JSON object, or a list of them, but is {shown(options)}.")
    count = max(len(kinds), len(listed))
    pairs = zip(_spread(kinds, count, name), _spread(listed, count, name), strict=True)
    of_all = len(listed) == 1 < count
    return [Part(kind.kind, {} if kind.kind == NONE and of_all else own) for kind, own in pairs]


def _spread(entries: list[Any], count: int, name: str) -> list[Any]:
    if len(entries) not in (1, count):
        raise UserError(f"`{name}{ENDING}` must have one entry, or one for each part, but has {len(entries)}.")
    return entries * (count // len(entries))


#: Returns what a part meant until 0.2.0, given the config and the name of its field. What a user gave wins.
Rule = Callable[[Any, str, Part], Part]


def of_kind(axis: str, kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    """Return the rule that changes the options of a kind of part in the fields whose names end in ``axis``."""

    def rule(config: Any, field: str, part: Part) -> Part:
        return Part(kind, change(dict(part.options))) if field.endswith(axis) and part.kind == kind else part

    return rule


def _with_local_window(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of local heads, whose window was that of one side."""
    if type(options.get("window")) is not int or "local_window" in options:
        return options
    kept = {name: value for name, value in options.items() if name != "window"}
    return {**kept, "local_window": 2 * options["window"]}


def _with_16_causal_buckets(config: Any, field: str, part: Part) -> Part:
    """Return LSH attention that looks backwards only, whose buckets did not follow from a length."""
    if part.kind != "lsh" or not (field.startswith("decoder") or isinstance(config, LanguageModelConfig)):
        return part
    return Part("lsh", {**part.options, "num_buckets": part.options.get("num_buckets") or 16})


RULES: list[Rule] = [
    of_kind("self_attention", "lsh", lambda options: {"is_flat": True, "chunk_buckets": 1, **options}),
    _with_16_causal_buckets,
    of_kind("attention", "lsh", _with_local_window),
    of_kind("attention", "efficient", _with_local_window),
    of_kind("recurrence", "sru", lambda options: {"scaled": False, **options}),
]
#: Options that parts of a kind of config of 0.2.0 had where it did not say them.
DEFAULT_OPTIONS: dict[type[Any], dict[str, str]] = {
    LanguageModelConfig: {"feed_forward": '{"activation": "gelu"}', "output": '{"bias": true}'}
}


def upgraded_config(kind: type[Any], values: Mapping[str, Any], written: int) -> Any:
    """Return the config that a file holds, in today's meaning.

    Args:
        kind: of the config.
        values: its fields by name; those that are missing have their defaults.
        written: the format that the file records.

    Raises:
        UserError: a field that does not exist, or a value of the wrong type.
    """
    parts = part_fields(kind)
    options = {f"{name}{ENDING}" for name in parts}
    given = {name: value for name, value in values.items() if value is not None or name not in options}
    # An axis of one kind in 0.1.0; it is called `stack` today.
    given.pop("residual", None)
    if written < FORMAT:
        for name, text in DEFAULT_OPTIONS.get(kind, {}).items():
            if name in given:
                given.setdefault(f"{name}{ENDING}", text)
    several = "," in str(given.get("memories", ""))
    today = {name: value for name, value in given.items() if name not in options}
    config = config_as(kind, today | translated(given, parts, several))
    for rule in RULES if written < FORMAT else ():
        texts = {name: text for name in parts if (text := getattr(config, name)) is not None}
        new = {name: changed(name, text, lambda part, n=name: rule(config, n, part)) for name, text in texts.items()}  # type: ignore[misc]  # noqa: B023
        config = replace(config, **new)
    return config


# "core." stands in the names of checkpoints, and not in those of exports.
_CODER = r"^((?:en|de)coder\.(?:core\.)?)"
_LAYER = rf"{_CODER}((?:layers|poolers)\.\d+\.(?:layer\.)?)"
_RENAMED = [
    (rf"{_CODER}embedding\.", r"\1embedder.tokens."),
    # The layer of funnel pooling: its attention, from pooled to unpooled positions, is cross-attention today.
    (rf"{_CODER}(poolers\.\d+\.layer\.)self_attention\.", r"\1\2cross_attention."),
    (rf"{_CODER}(poolers\.\d+\.layer\.)around_attention\.", r"\1\2around_cross_attention."),
    (rf"{_LAYER}(self|cross)_attention\.", r"\1\2sublayers.\3_attention.function.projections."),
    (rf"{_LAYER}feed_forward\.", r"\1\2sublayers.feed_forward.function."),
    (rf"{_LAYER}around_attention\.", r"\1\2sublayers.self_attention."),
    (rf"{_LAYER}around_(\w+)\.", r"\1\2sublayers.\3."),
]


def todays_name(name: str) -> str:
    """Return today's name of a weight of 0.1.0; others stay as they are."""
    for pattern, new in _RENAMED:
        name = re.sub(pattern, new, name)
    return name


def _network(config: Any, weights: Mapping[str, Tensor], longest_target: int) -> tuple[nn.Module, Callable[[str], str]]:
    """Return a model without weights, and how a checkpoint calls each of them."""
    vocab_size = next(len(weight) for name, weight in weights.items() if name.endswith("embedder.tokens.weight"))
    with shapes_alone():
        if isinstance(config, LanguageModelConfig):
            return build_language_model(config, vocab_size, PAD, 4), "decoder.core.{}".format
        if isinstance(config, ExtractorConfig):
            return build_extractor(config, vocab_size, 4, PAD), "core.{}".format
        network = build(config, vocab_size, PAD, 4, longest_target, name_end_idx=5, document_separator_idx=6)
    return network, lambda name: re.sub(r"^((?:en|de)coder)\.", r"\1.core.", name)


def upgraded_checkpoint(state: dict[str, Any], path: Path) -> tuple[dict[str, Any], Any]:
    """Return what today's fairseq-train would have saved, and the config of the model.

    Raises:
        UserError: it is no checkpoint of a model of ours, or of today's format, or its parts do not fit together.
    """
    settings = state.get("cfg") if isinstance(state, dict) else None
    shape = settings.get("model") if isinstance(settings, dict) else None
    kind = ARCHITECTURES.get(str(shape.get("_name"))) if isinstance(shape, dict) else None
    weights = state.get("model") if isinstance(state, dict) else None
    if not isinstance(settings, dict) or not isinstance(shape, dict) or kind is None or not isinstance(weights, dict):
        raise UserError(f"{path} must be a checkpoint of a model of pyramidions, but is none.")
    check_weights(weights, path)
    written = shape.get("config_format") or UNRECORDED
    options = {f"{name}{ENDING}" for name in part_fields(kind)}
    _refuse_current(path, written, any(shape.get(name) is not None for name in options))
    known = {name: value for name, value in shape.items() if name in {*options, *kind.__dataclass_fields__}}
    config = upgraded_config(kind, known, written)
    # fairseq's own fields stand among the model's.
    others = {name: value for name, value in shape.items() if name not in {*options, "residual"}}
    task = settings.get("task") or {}
    own = asdict(config)
    if own.get("max_source_positions", 0) is None:
        own["max_source_positions"] = task.get("max_source_positions")
    named = {todays_name(name): weight for name, weight in weights.items()}
    network, called = _network(config, named, task.get("max_target_positions") or 1024)
    if lacking := next((name for name in map(called, network.state_dict()) if name not in named), None):
        raise UserError(f"The weights of {path} do not fit its settings: {lacking} is missing.")
    new = in_todays_order({**state, "model": named}, network, called, task.get("freeze"))
    new["cfg"] = {**settings, "model": {**others, **own, "config_format": FORMAT}}
    said = task.get("eval_rouge_args")
    if isinstance(said, str) and said.startswith("{"):
        # JSON once, today the notation of options.
        options_of_search = parse_json(said)
        new["cfg"]["task"] = {**task, "eval_rouge_args": ", ".join(f"{k}={v!r}" for k, v in options_of_search.items())}
    return new, config


def in_todays_order(
    state: dict[str, Any], network: nn.Module, called: Callable[[str], str], frozen: str | None
) -> dict[str, Any]:
    """Return a checkpoint with its weights, and what its optimizer knows of them, in the order of today's model.

    An optimizer's state goes by the place of a parameter among all that learn: an entry for each, or a stretch of one
    flat tensor, as with ``--fp16``. What belongs to others, such as a criterion's, follows behind, and stays there.

    Args:
        state: the checkpoint, with today's names.
        network: today's model.
        called: how a checkpoint calls a weight of it.
        frozen: the parts that do not learn; None if all do.
    """
    weights = state["model"]
    if frozen:
        freeze(network, frozen)
    own = {called(name): weight for name, weight in network.named_parameters(remove_duplicate=False)}
    # A weight that several modules share counts where it comes first.
    now, before = (
        list(dict.fromkeys(own[name] for name in names if name in own and own[name].requires_grad))
        for names in (own, weights)
    )
    new = {**state, "model": {name: weights[name] for name in [*own, *(name for name in weights if name not in own)]}}
    known, place = state.get("last_optimizer_state") or {}, {weight: i for i, weight in enumerate(before)}
    sizes, places = [weight.numel() for weight in before], [place[weight] for weight in now]
    if not known.get("state") or places == sorted(places):
        return new

    def moved(value: Any) -> Any:
        # The number of steps is no tensor, or one without dimensions.
        if not isinstance(value, Tensor) or value.dim() == 0:
            return value
        *stretches, rest = value.split([*sizes, value.numel() - sum(sizes)])
        return torch.cat([*(stretches[place] for place in places), rest])

    entries = known["state"]
    if sum(len(group["params"]) for group in known["param_groups"]) == 1 < len(now):
        found = {i: {name: moved(value) for name, value in entry.items()} for i, entry in entries.items()}
    else:
        found = {i: entries[place] for i, place in enumerate(places) if place in entries}
        found |= {i: entry for i, entry in entries.items() if i >= len(now)}
    return {**new, "last_optimizer_state": {**known, "state": found}}


def _refuse_current(path: Path, written: Any, has_options: bool = False) -> None:
    if type(written) is not int or written not in range(1, FORMAT + 1):
        raise UserError(f"{path} must be of format 1 to {FORMAT}, but is of {shown(written)}.")
    if written == FORMAT and not has_options:
        raise UserError(f"{path} is current already: it needs no upgrade.")


def upgrade_checkpoint(old: Path, new: Path) -> Any:
    """Rewrite a checkpoint; return the config of its model."""
    state, config = upgraded_checkpoint(load_safely(old), old)
    with atomic_file(new) as file:
        torch.save(state, file)
    return config


def flags_of(config: Any) -> list[str]:
    """Return the flags by which fairseq-train builds a model. Presets of an older release may have been others."""
    # The preset of each is the defaults of its config.
    names = {PyramidionConfig: "vanilla", ExtractorConfig: "pyramidion_extractor", LanguageModelConfig: "pyramidion_lm"}
    flags = ["--arch", names[type(config)]]
    for each in fields(config):
        value = getattr(config, each.name)
        # The task has the length of documents.
        if value != each.default and each.name != "max_source_positions":
            flags += [flag_of(each.name), *([] if value is True else [str(value)])]
    return flags


def upgrade_export(old: Path, new: Path) -> None:
    """Rewrite an export."""
    about = read_json(old / CONFIG)
    kind = KINDS.get(about.get("kind", SUMMARIZER.name))
    if kind is None or not isinstance(about.get("model"), dict):
        raise UserError(f"{old} must be as written by `pyramidions export`, but is not.")
    _refuse_current(old, about.get("format"))
    check_hashes(old, about.get("sha256", {}))
    config = upgraded_config(kind.config, about["model"], about["format"])
    weights = read_weights(old)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        kept = {name: value for name, value in about.items() if name != "sha256"}
        (work / CONFIG).write_bytes(as_json_bytes({**kept, "format": FORMAT, "model": asdict(config)}))
        save_file({todays_name(name): weight for name, weight in weights.items()}, work / WEIGHTS)
        for name in TOKENIZERS:
            if (old / name).is_file():
                (work / name).write_bytes((old / name).read_bytes())
        model = load_any(work)
    card = old / CARD
    export_model(model, new, card.read_text(encoding="utf-8") if card.is_file() else "")


def upgrade(old: Path, new: Path) -> str:
    """Rewrite a checkpoint or an export; return what to say.

    Raises:
        UserError: there is something at ``new``, or ``old`` is no model of an older release.
    """
    if not old.exists():
        raise UserError(f"OLD must be a checkpoint or an export, but {old} does not exist.")
    if new.exists() or new.is_symlink():
        raise UserError(f"NEW must not exist yet, but {new} does.")
    if not new.absolute().parent.is_dir():
        raise UserError(f"NEW must be in a folder that exists, but is {new}.")
    if old.is_dir() and not (old / CONFIG).exists():
        raise UserError(f"OLD must be a checkpoint or an export, but the folder {old} holds no {CONFIG}.")
    if old.is_dir():
        upgrade_export(old, new)
        return f"{old} is rewritten as {new}."
    flags = flags_of(upgrade_checkpoint(old, new))
    return f"{old} is rewritten as {new}. To train it further, give fairseq-train\n{shlex.join(flags)}"


def main(words: Sequence[str] | None = None) -> None:
    """Run the program."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("scripts/upgrade.py", None, __doc__, EXAMPLE, formatter_class=layout)
    parser.add_argument("old", metavar="OLD", type=Path, help="checkpoint of fairseq-train (.pt), or exported folder")
    parser.add_argument("new", metavar="NEW", type=Path, help="what to write: a file for a file, a folder for a folder")
    given = parser.parse_args(words)
    try:
        print(upgrade(given.old, given.new))
    except UserError as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        sys.exit(f"Error: {error.filename}: {error.strerror}.")


if __name__ == "__main__":
    main()
