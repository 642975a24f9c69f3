"""Decoding settings: what the user says, else what the checkpoint says, never fairseq's own defaults."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor, nn

from pyramidions.base.errors import UserError
from pyramidions.nn.ngram import block_repeated_ngrams

#: fairseq's generation argument to the model config's field
_FIELDS = {
    "beam": "decoding_beam",
    "lenpen": "decoding_length_penalty",
    "min_len": "decoding_min_length",
    "max_len_b": "decoding_max_length",
    "no_repeat_ngram_size": "decoding_no_repeat_ngram",
}
# Marks a flag that was not given. fairseq requires numbers here, so that None is refused, and fills in its own default
# for an argument that is missing, so that a default cannot be told from a wish. No setting has this value.
_NOT_GIVEN = -(2**31)
# Arguments that are no flags of beam search: fairseq's own marks, and how BLEU is computed.
_NO_SEARCH = ("_name", "no_seed_provided", "sacrebleu")


def unset_defaults(parser: ArgumentParser) -> None:
    """Mark the decoding flags of `fairseq-generate` and `fairseq-interactive` as not given unless they are."""
    # A training has none of these flags, and must not get them into its config.
    parser.set_defaults(**{name: _NOT_GIVEN for name in _FIELDS if parser.get_default(name) is not None})


def from_options(options: dict[str, Any]) -> Namespace:
    """Return generation arguments, by the names of fairseq's config.

    Raises:
        UserError: fairseq has no such argument, or its type is another one.
    """
    known = {name: getattr(GenerationConfig(), name) for name in GenerationConfig.__dataclass_fields__}
    for name, value in options.items():
        if name.startswith("_") or name not in known:
            names = ", ".join(sorted(name for name in known if not name.startswith("_")))
            raise UserError(f"`eval_rouge_args` knows no argument {name!r}, only {names}.")
        default = known[name]
        if isinstance(value, bool) != isinstance(default, bool) or isinstance(value, str) != (
            default is None or isinstance(default, str)
        ):
            raise UserError(f"{name!r} in `eval_rouge_args` must be like {default!r}, but is {value!r}.")
    return Namespace(**options)


def fill_in(args: Any, models: list[Any]) -> None:
    """Set, in place, each generation argument that the user left open.

    Args:
        args: fairseq's generation config, or a namespace that may lack arguments.
        models: the ensemble.

    Raises:
        UserError: an argument is open and the models disagree on it, or have nothing to say; or no summary can be as
            long as it must.
    """
    for name, field in _FIELDS.items():
        if getattr(args, name, _NOT_GIVEN) != _NOT_GIVEN:
            continue
        if name == "max_len_b" and getattr(args, "max_len_a", None):
            args.max_len_b = 0  # the user bounds the length by the source's
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
    """Refuse flags of beam search, for a task that searches nothing; set, in place, what fairseq prints of them.

    Raises:
        UserError: one is given; those of `unset_defaults` with any value, others with one that is not their default.
    """
    for name, field in GenerationConfig.__dataclass_fields__.items():
        unset = _NOT_GIVEN if name in _FIELDS else field.default
        if name not in _NO_SEARCH and (value := getattr(args, name, unset)) != unset:
            given = _flag(name) if value is True else f"{_flag(name)} {value}"
            raise UserError(f"{given} is an option of beam search, which --task {task} does not have.")
    args.beam = 1


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _agreed(name: str, values: Iterable[Any]) -> Any:
    found = sorted(set(values), key=repr)
    flag = _flag(name)
    if len(found) > 1:
        raise UserError(f"The models of the ensemble disagree on {flag} ({', '.join(map(str, found))}): give the flag.")
    if found[0] is None:
        raise UserError(f"The model holds no decoding settings: give the flag {flag}.")
    return found[0]


class NGramBlocker(nn.Module):
    """Blocks repeated n-grams behind the interface of fairseq's generator.

    Without its CUDA extension, fairseq's own blocks nothing: it compares with the padding after a hypothesis instead of
    its last tokens.

    Args:
        size: n.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        """Forbid in ``lprobs`` (B, V) each token that would repeat an n-gram of the first ``step`` ``tokens`` (B, T).

        The first token starts the text and does not count: with n = 1, a summary could never end.
        """
        return block_repeated_ngrams(lprobs, tokens[:, 1 : step + 1], self.size)
