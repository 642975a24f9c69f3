"""Decoding settings: what the user says, else what the checkpoint says, never fairseq's own defaults."""

from argparse import Namespace
from collections.abc import Iterable
from typing import Any, get_type_hints

from fairseq.dataclass.configs import GenerationConfig

from pyramidions.base.arguments import fits, flag_of, rule_of
from pyramidions.base.errors import UserError
from pyramidions.plugin.hooks import NOT_GIVEN

#: fairseq's generation argument to the model config's field
FIELDS = {
    "beam": "decoding_beam",
    "lenpen": "decoding_length_penalty",
    "min_len": "decoding_min_length",
    "max_len_b": "decoding_max_length",
    "no_repeat_ngram_size": "decoding_no_repeat_ngram",
}
# What else a search of validation may be told.
_SEARCH = (
    *("diverse_beam_groups", "diverse_beam_strength", "diversity_rate", "match_source_len", "max_len_a", "sampling"),
    *("sampling_topk", "sampling_topp", "temperature", "unkpen", "unnormalized"),
)
# Arguments that none of our models heeds.
_UNHEEDED = ("constraints", "print_alignment", "retain_dropout")
# Arguments that are no flags of beam search: fairseq's own marks, and how BLEU is computed.
_NO_SEARCH = ("_name", "no_seed_provided", "sacrebleu")


def from_options(options: dict[str, Any]) -> Namespace:
    """Return generation arguments, by the names of fairseq's config."""
    known, hints = sorted((*FIELDS, *_SEARCH)), get_type_hints(GenerationConfig)
    for name, value in options.items():
        if name not in known:
            raise UserError(f"`eval_rouge_args` knows no argument {name!r}, only {', '.join(known)}.")
        if not fits(value, hints[name]):
            raise UserError(f"{name!r} in `eval_rouge_args` must be {rule_of(hints[name])}, but is {value!r}.")
    return Namespace(**options)


def check_heeded(args: Any, task: str) -> None:
    """Refuse generation arguments that would change nothing."""
    for name in _UNHEEDED:
        if getattr(args, name, None):
            raise UserError(f"{flag_of(name)} is not supported by --task {task}.")


def fill_in(args: Any, models: list[Any]) -> None:
    """Set, in place, each generation argument that the user left open."""
    for name, field in FIELDS.items():
        if getattr(args, name, NOT_GIVEN) != NOT_GIVEN:
            continue
        if name == "max_len_b" and getattr(args, "max_len_a", None):
            args.max_len_b = 0  # the user bounds the length by the source's
            continue
        if name == "min_len" and getattr(args, "max_len_a", None):
            args.min_len = 1  # a short source may not allow the model's own
            continue
        setattr(args, name, _agreed(name, (getattr(getattr(m, "config", None), field, None) for m in models)))
    if args.beam < 1:
        raise UserError(f"--beam must be at least 1, but is {args.beam}.")
    # One position is the end of the text.
    longest = min(int(model.max_decoder_positions()) for model in models) - 1
    if not getattr(args, "max_len_a", None):
        longest = min(longest, args.max_len_b)
    if args.min_len > longest:
        raise UserError(
            f"The shortest summary asked for (--min-len, or min_len in --eval-rouge-args) must have at most {longest} "
            f"tokens, as many as the model may write, but has {args.min_len}."
        )


def refuse(args: Any, task: str) -> None:
    """Refuse flags of beam search for a task without a search; set, in place, those that fairseq prints."""
    for name, field in GenerationConfig.__dataclass_fields__.items():
        unset = NOT_GIVEN if name in FIELDS else field.default
        if name not in _NO_SEARCH and (value := getattr(args, name, unset)) != unset:
            given = flag_of(name) if value is True else f"{flag_of(name)} {value}"
            raise UserError(f"{given} is an option of beam search, which --task {task} does not have.")
    args.beam = 1


def _agreed(name: str, values: Iterable[Any]) -> Any:
    found = sorted(set(values), key=repr)
    flag = flag_of(name)
    if len(found) > 1:
        raise UserError(f"The models of the ensemble disagree on {flag} ({', '.join(map(str, found))}): give the flag.")
    if found[0] is None:
        raise UserError(f"The model holds no decoding settings: give the flag {flag}.")
    return found[0]
