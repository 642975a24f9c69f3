"""What files of older releases mean today: the configs of models, and the names of weights."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import Tensor

from pyramidions.arguments import shown
from pyramidions.errors import UserError
from pyramidions.models.config import Config, config_as
from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.strict_json import parse_json

#: Of configs: 1 was written by release 0.1, 2 by 0.2, 3 is written since 0.3. Exports record it as `format`,
#: checkpoints as `config_format`.
FORMAT = 3
#: of checkpoints of 0.1 and 0.2, which record none
UNRECORDED = 2

#: Returns the fields that change, by name.
Rule = Callable[[Any], Mapping[str, str]]


def of_kind(axis: str, kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    """Return the rule that changes the options of one kind of part, wherever a config has it.

    Args:
        axis: how the fields end that name such parts: attention, recurrence, decoder, ...
        kind: of the part.
        change: returns its options in today's meaning. What a user gave must win: ``{"new": old_value, **options}``.
    """

    def of_each(kinds: str, options: Any) -> Any:
        def own(name: str, entry: Any) -> Any:
            return change(entry) if name.strip() == kind and isinstance(entry, dict) else entry

        return _spread(kinds.split(","), options, own)

    def rule(config: Any) -> dict[str, str]:
        found = {}
        for name, kinds in vars(config).items():
            text = getattr(config, f"{name}_args", None)
            if text is None or not name.endswith(axis):
                continue
            with suppress(ValueError):  # what `FieldReader` refuses
                options = parse_json(text)
                # Of several memories, options are those of all, or a list of those of each.
                several = name == "cross_attention" and "," in config.memories
                changed = _spread(kinds.split(";"), options, of_each) if several else of_each(kinds, options)
                if changed != options:
                    found[f"{name}_args"] = json.dumps(changed)
        return found

    return rule


def _spread(kinds: list[str], options: Any, change: Callable[[str, Any], Any]) -> Any:
    """Change the options of each kind, where one kind or one entry stands for all; unchanged ones stay as they are."""
    entries = options if isinstance(options, list) else [options]
    count = max(len(kinds), len(entries))
    kinds, entries = (given * (count if len(given) == 1 else 1) for given in (kinds, entries))
    changed = [change(*both) for both in zip(kinds, entries, strict=True)]
    return options if changed == entries else changed[0] if count == 1 and options == entries[0] else changed


def _with_local_window(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of local heads, whose window was that of one side."""
    if type(options.get("window")) is not int or "local_window" in options:
        return options
    kept = {name: value for name, value in options.items() if name != "window"}
    return {**kept, "local_window": 2 * options["window"]}


def _with_16_causal_buckets(config: Any) -> dict[str, str]:
    """Return the options of LSH attention that looks backwards only, whose buckets did not follow from a length."""
    of_lsh = of_kind("self_attention", "lsh", lambda each: {**each, "num_buckets": each.get("num_buckets") or 16})
    is_causal = isinstance(config, LanguageModelConfig)
    return {name: options for name, options in of_lsh(config).items() if is_causal or name.startswith("decoder")}


#: What a config of a format below a number meant, by the rules of that number, in order. A field that a config lacks
#: has its default: defaults of fields never change. For the options of parts there is a rule: if a new one should be
#: off in older files, ``(3, of_kind("attention", "lsh", lambda options: {"new": False, **options}))``.
RULES: list[tuple[int, Rule]] = [
    (3, of_kind("self_attention", "lsh", lambda options: {"is_flat": True, "chunk_buckets": 1, **options})),
    (3, _with_16_causal_buckets),
    (3, of_kind("attention", "lsh", _with_local_window)),
    (3, of_kind("attention", "efficient", _with_local_window)),
    (3, of_kind("recurrence", "sru", lambda options: {"scaled": False, **options})),
]


def config_as_written(kind: type[Config], values: Mapping[str, Any], written: Any) -> Config:
    """Return the config that a file holds, in today's meaning.

    Args:
        kind: of the config.
        values: its fields by name; those that are missing have their defaults.
        written: the format that the file records; None if it records none.

    Raises:
        UserError: a field that does not exist, a value of the wrong type, or a format of a later release.
    """
    if written is not None and (isinstance(written, bool) or written not in range(1, FORMAT + 1)):
        raise UserError(f"`config_format` must be from 1 to {FORMAT}, but is {shown(written)}.")
    format = UNRECORDED if written is None else written
    # An axis of one kind in 0.1; it is called `stack` today.
    config = config_as(kind, {name: value for name, value in values.items() if format > 1 or name != "residual"})
    for before, rule in RULES:
        if format < before:
            config = replace(config, **rule(config))  # type: ignore[type-var]
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


def rename_from_0_1(weights: dict[str, Tensor]) -> None:
    """Rename, in place, weights that 0.1.0 saved; others stay as they are.

    Their order stays, too: an optimizer's state goes by it.
    """
    renamed = {_today(name): weight for name, weight in weights.items()}
    weights.clear()
    weights.update(renamed)


def _today(name: str) -> str:
    for pattern, new in _RENAMED:
        name = re.sub(pattern, new, name)
    return name
