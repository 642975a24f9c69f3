"""What files of older releases mean today: the configs of models, and the names of weights."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.models.config import Config, LanguageModelConfig, config_as
from pyramidions.models.declared import part_fields
from pyramidions.models.notation import changed
from pyramidions.models.older_fields import ENDING, has_both
from pyramidions.models.spec import Part

#: Of configs: 1 was written by release 0.1, 2 by 0.2, 3 is written since 0.3. Exports record it as `format`,
#: checkpoints as `config_format`.
FORMAT = 3
#: Options that a kind of config of 0.2 had where it did not say them.
_DEFAULT_OPTIONS: dict[type[Any], dict[str, str]] = {
    LanguageModelConfig: {"feed_forward_args": '{"activation": "gelu"}', "output_args": '{"bias": true}'}
}
#: of checkpoints of 0.1 and 0.2, which record none
UNRECORDED = 2

#: Returns a part in today's meaning, given the config that has it and the name of its field.
Rule = Callable[[Any, str, Part], Part]


def of_kind(axis: str, kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    """Return the rule that changes the options of one kind of part, wherever a config has it.

    Args:
        axis: how the fields end that describe such parts: attention, recurrence, decoder, ...
        kind: of the part.
        change: returns its options in today's meaning. What a user gave must win: ``{"new": old_value, **options}``.
    """

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
    known = {name: value for name, value in values.items() if format > 1 or name != "residual"}
    if format < FORMAT:
        # Who changed such a config wrote today's language.
        known = {name: value for name, value in known.items() if not has_both(known, name)}
        known |= {
            name: text
            for name, text in _DEFAULT_OPTIONS.get(kind, {}).items()
            if known.get(name) is None and not has_both(known, name) and name.removesuffix(ENDING) in known
        }
    config = config_as(kind, known, warn=format == FORMAT)
    for before, rule in RULES:
        if format < before:
            config = _changed(config, rule)
    return config


def _changed(config: Config, rule: Rule) -> Config:
    texts = {name: getattr(config, name) for name in part_fields(type(config))}
    given = {name: text for name, text in texts.items() if text is not None}
    new = {name: changed(name, text, lambda part, name=name: rule(config, name, part)) for name, text in given.items()}  # type: ignore[misc]
    return replace(config, **new)  # type: ignore[type-var]


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
