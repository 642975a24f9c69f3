"""Reads BART and BART-LS as published with fairseq: an archive of model.pt and dict.txt, with GPT-2's vocabulary."""

import shutil
import tarfile
import zlib
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from torch import Tensor

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.files.atomic import named_by
from pyramidions.files.bounded import require_at_most
from pyramidions.pretrained.checkpoint_file import check_weights, load_safely
from pyramidions.pretrained.places import ARCHIVES, DICTIONARY, MODEL
from pyramidions.text.tokenizer import BOS, EOS, PAD, SPECIALS
from pyramidions.text.tokenizer.json_file import library

_ENCODER, _MERGES = "encoder.json", "vocab.bpe"
_LIMITS = {MODEL: 1 << 15, DICTIONARY: 64, _ENCODER: 64, _MERGES: 64}  # of a packed file, in MiB
# Settings that have the same name in transformers, and those that have another one.
_SAME = (
    *("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
    *("dropout", "attention_dropout", "activation_dropout"),
)
_SETTINGS = {
    **{name: name for name in _SAME},
    "encoder_embed_dim": "d_model",
    "encoder_ffn_embed_dim": "encoder_ffn_dim",
    "decoder_ffn_embed_dim": "decoder_ffn_dim",
    "max_source_positions": "max_encoder_position_embeddings",
    "max_target_positions": "max_decoder_position_embeddings",
    "activation_fn": "activation_function",
}
# What all of its BARTs are.
_ALWAYS: Mapping[str, Any] = {
    **dict.fromkeys(
        ("encoder_learned_pos", "decoder_learned_pos", "layernorm_embedding", "share_all_embeddings"), True
    ),
    **dict.fromkeys(("encoder_normalize_before", "decoder_normalize_before", "cross_self_attention"), False),
    **dict.fromkeys(("no_cross_attention", "adaptive_input"), False),
    "adaptive_softmax_cutoff": None,
}
# What BART-LS says further.
_LONG = ("use_xformers", "attention_name", "xformer_config", "pooling_layers", "alibi")
_ACTIVATIONS = {"gelu_accurate": "gelu_new", "gelu_fast": "gelu_new"}  # fairseq's own approximate it by tanh
_RENAMED = {"encoder.embed_tokens.weight": "shared.weight", "decoder.output_projection.weight": "lm_head.weight"}
_COUNTERS = ("encoder.version", "decoder.version")
_BLOCK_SIZE = 1024  # of BART-LS, where nothing else is said
_GENERATOR = "generator."  # proposes words while BART-LS is pretrained; the model does without


class Archive(NamedTuple):
    """A model of fairseq, in the terms of transformers."""

    config: dict[str, Any]  # what a config.json would say
    weights: dict[str, Tensor]  # by the names that transformers has for them
    vocabulary: bytes  # a tokenizer.json of its texts


def archive_name(path: Path) -> str:
    """Return the name of an archive, bart.base for bart.base.tar.gz."""
    name = path.resolve().name
    return next((name.removesuffix(suffix) for suffix in ARCHIVES if path.is_file() and name.endswith(suffix)), name)


def read_archive(path: Path) -> Archive:
    """Read an archive, or refuse one that is damaged or no BART."""
    with _unpacked(path) as folder:
        state = load_safely(folder / MODEL, Namespace, name=path / MODEL)
        settings, weights = _parts(state, path)
        check_weights(weights, path / MODEL)
        weights = _renamed(weights, path)
        embedding = weights.get("shared.weight")
        if embedding is not None and embedding.dim() != 2:
            raise UserError(f"The embedding of {path} must have two dimensions, but has {embedding.dim()}.")
        rows = 0 if embedding is None else len(embedding)
        return Archive(_config(settings, path) | {"vocab_size": rows}, weights, _vocabulary(folder, path, rows))


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Yield a folder with the archive's files that are read; the folder of a packed archive is removed afterwards."""
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory(prefix="pyramidions-") as folder:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    name = PurePosixPath(member.name).name
                    # Only names that we know, and no links: nothing leads out of the folder.
                    if member.isfile() and name in _LIMITS and (content := archive.extractfile(member)):
                        require_at_most(_LIMITS[name], member.size, f"{name} in {path}")
                        with content, named_by(Path(folder) / name), (Path(folder) / name).open("wb") as file:
                            shutil.copyfileobj(content, file, 1 << 20)
        except (tarfile.TarError, EOFError, OSError, LZMAError, zlib.error) as error:
            # Damaged bytes have no number.
            if isinstance(error, OSError) and error.filename is not None and error.errno is not None:
                raise
            raise UserError(f"{path} is damaged or no archive ({error}).") from None
        for name in (MODEL, DICTIONARY):
            if not (Path(folder) / name).is_file():
                raise UserError(f"{path} lacks {name}.")
        yield Path(folder)


def _parts(state: Any, name: Path) -> tuple[Mapping[str, Any], dict[str, Tensor]]:
    """Return the settings and the weights of what fairseq saved."""
    found = state if isinstance(state, dict) else {}
    config, settings, weights = found.get("cfg"), found.get("args"), found.get("model")
    if settings is None and isinstance(config, dict):
        settings = config.get("model")
    settings = vars(settings) if isinstance(settings, Namespace) else settings
    if not isinstance(settings, dict) or not isinstance(weights, dict):
        raise UserError(f"{name / MODEL} must be a checkpoint of fairseq, but lacks its settings or weights.")
    if not all(isinstance(key, str) and isinstance(value, Tensor) for key, value in weights.items()):
        raise UserError(f"{name / MODEL} must hold weights by name, but holds something else.")
    return settings, weights


def _config(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    known = (*_ALWAYS, *_SETTINGS, *_LONG, "no_scale_embedding")
    for name in (name for name in known if name in settings):
        if not isinstance(settings[name], bool | int | float | str | None):
            raise UserError(f"`{name}` of {path} must be a number or a word, but is {shown(settings[name])}.")
    for name, expected in _ALWAYS.items():
        if settings.get(name, expected) != expected:
            raise UserError(f"`{name}` of {path} must be {expected}, but is {shown(settings[name])}: it is no BART.")
    found = {theirs: settings[name] for name, theirs in _SETTINGS.items() if name in settings}
    activation = found.get("activation_function")
    return {
        **found,
        "model_type": "bart",
        "activation_function": _ACTIVATIONS.get(str(activation), activation),
        "scale_embedding": not settings.get("no_scale_embedding", False),
        "bos_token_id": BOS,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": EOS,
        # As its hub of BART begins and ends summaries.
        "forced_bos_token_id": BOS,
        "forced_eos_token_id": EOS,
        "early_stopping": True,
        **(_of_long(settings, path) if settings.get("use_xformers") or settings.get("pooling_layers") else {}),
    }


def _of_long(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a config.json would say of BART-LS beyond BART."""
    for name, expected in (("use_xformers", True), ("alibi", False)):
        if (found := settings.get(name, expected)) != expected:
            raise UserError(f"`{name}` of {path} must be {expected} in a BART-LS, but is {shown(found)}.")
    try:
        about = parse_json(str(settings.get("xformer_config") or "{}").encode())
    except ValueError as error:
        raise UserError(f"`xformer_config` of {path} must be a JSON object, but is damaged: {error}.") from None
    if not isinstance(about, dict):
        raise UserError(f"`xformer_config` of {path} must be a JSON object, but is {shown(about)}.")
    return {
        "model_type": "bart_ls",
        "attention_name": settings.get("attention_name", "block_noglobal"),
        "block_size": about.get("block_size", _BLOCK_SIZE),
        "pooling_layers": settings.get("pooling_layers", 0),
    }


def _renamed(weights: dict[str, Tensor], name: Path) -> dict[str, Tensor]:
    """Return weights as transformers has them, each once."""
    weights = {key: value for key, value in weights.items() if not key.startswith(_GENERATOR)}
    found = {key: value for key, value in weights.items() if key not in _COUNTERS and ".in_proj_" not in key}
    for key, value in weights.items():
        head, is_stacked, kind = key.partition("in_proj_")
        if not is_stacked:
            continue
        # Older releases stack the projections; some files of later ones have them twice.
        if value.dim() == 0 or len(value) % 3 or not len(value):
            raise UserError(
                f"{key} of {name} must stack the rows of three projections, but its shape is {tuple(value.shape)}."
            )
        for part, own in zip("qkv", value.chunk(3), strict=True):
            other = found.setdefault(single := f"{head}{part}_proj.{kind}", own)
            if other.dtype != own.dtype or not other.equal(own):
                raise UserError(f"The weights of {name} must have one value each, but {single} differs from {key}.")
    return {_RENAMED.get(key, key): value for key, value in found.items()}


def _vocabulary(folder: Path, name: Path, rows: int) -> bytes:
    """Return a tokenizer.json of the pieces with their ids, and the merges of GPT-2's.

    Each line of dict.txt has an id of GPT-2's as its symbol, in the order of fairseq's own ids.
    """
    if missing := [file for file in (_ENCODER, _MERGES) if not (folder / file).is_file()]:
        raise UserError(
            f"{name} lacks {' and '.join(missing)}, which spell GPT-2's ids in {DICTIONARY}: put fairseq's "
            f"gpt2_bpe/{_ENCODER} and gpt2_bpe/{_MERGES} beside {MODEL} in a folder."
        )
    try:
        spellings = {str(i): piece for piece, i in parse_json((folder / _ENCODER).read_bytes()).items()}
        lines = (folder / DICTIONARY).read_text(encoding="utf-8").splitlines()
        symbols = [line.rsplit(" ", 1)[0] for line in lines]
        header, *merges = (folder / _MERGES).read_text(encoding="utf-8").splitlines()
        if not header.startswith("#version"):
            raise ValueError
        pairs = [(first, second) for first, second in (line.split(" ") for line in merges if line)]
    except (ValueError, AttributeError):
        raise UserError(f"{DICTIONARY}, {_ENCODER} and {_MERGES} of {name} must be those of fairseq's BART.") from None
    names = [*SPECIALS, *(spellings.get(symbol, symbol) for symbol in symbols)]
    if len(names) == rows - 1:
        # The task adds it behind the others.
        names.append("<mask>")
    if len(set(names)) < len(names):
        raise UserError(f"{DICTIONARY} of {name} must have each symbol once, but repeats one.")
    if not any(symbol in spellings for symbol in symbols):
        raise UserError(f"{DICTIONARY} of {name} must hold GPT-2's ids, but holds other symbols.")
    return _byte_level(names, pairs, name)


def _byte_level(names: list[str], pairs: list[tuple[str, str]], place: Path) -> bytes:
    """Return a tokenizer.json of BART with these pieces, in the order of their ids, and merges."""
    made = library()
    try:
        model = made.models.BPE(vocab={piece: i for i, piece in enumerate(names)}, merges=pairs)
    except Exception as error:  # the library raises nothing narrower
        raise UserError(f"{_MERGES} of {place} must merge pieces of {_ENCODER}, but does not ({error}).") from None
    tokenizer = made.Tokenizer(model)
    tokenizer.pre_tokenizer = made.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = made.decoders.ByteLevel()
    tokenizer.add_special_tokens([*SPECIALS, *(["<mask>"] if "<mask>" in names else [])])
    # BART's own; these files do not say it.
    ends = [(SPECIALS[BOS], BOS), (SPECIALS[EOS], EOS)]
    tokenizer.post_processor = made.processors.TemplateProcessing("<s> $A </s>", special_tokens=ends)
    return str(tokenizer.to_str()).encode()
