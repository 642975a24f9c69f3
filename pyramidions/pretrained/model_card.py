"""The model card of an exported model: the facts that `card.md` is filled with."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined  # torch needs it, too

from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain, shell_word
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.folder import DataFolder
from pyramidions.extract.selection import WORDS
from pyramidions.models.parse import extractor_spec_of, spec_of
from pyramidions.pretrained.card_data import CardScores, front_matter, table
from pyramidions.pretrained.in_words import reading_of
from pyramidions.pretrained.saved_model import SavedExtractor, SavedLanguageModel, SavedModel
from pyramidions.text.alphabets import LETTERS
from pyramidions.text.tokenizer import DOCUMENT_SEPARATOR


def model_card(
    model: SavedModel | SavedExtractor | SavedLanguageModel,
    name: str,
    data: DataFolder | CharacterFolder | None = None,
    scores: Path | None = None,
    licence: str | None = None,
    *,
    for_transformers: bool = False,
    languages: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> str:
    """Return a model card, which also states what is unknown.

    Languages are ISO 639 codes; a language model has its alphabet's. ``datasets`` are names on the hub, by default that
    of the data; if it is one, the scores, of a file of `pyramidions score --json`, are on it.
    """
    found = None if scores is None else CardScores.read(scores)
    origin = model.origin if isinstance(model, SavedModel) else None
    pools = not isinstance(model, SavedLanguageModel) and model.config.pooling_lengths is not None
    about: dict[str, Any] = {"library_name": "transformers" if for_transformers else "pyramidions"}
    if isinstance(model, SavedLanguageModel):
        about["tags"] = ["character-language-model", "dynamic-pooling"]
        languages = languages or [each for each in LETTERS if each == model.alphabet.language]
    else:
        about["pipeline_tag"] = "summarization"
        about["tags"] = [
            "long-documents",
            *["extractive-summarization"] * isinstance(model, SavedExtractor),
            *["pooling"] * pools,
        ]
        if origin is not None:
            about["tags"].append(origin.family)
            about["base_model"] = origin.source if origin.on_hub else None
        if not datasets:
            # The scores may be on another one.
            about["datasets"] = [hub] if (hub := _corpus(data).get("hub")) else None
    about["language"] = list(languages)
    return _template().render(
        front=front_matter(name, licence, datasets, found, about),
        name=name,
        model=model,
        origin=origin,
        pools=pools,
        for_transformers=for_transformers,
        separator=DOCUMENT_SEPARATOR,
        rows=_rows(model),
        corpus={"name": "", "config": "", "hub": "", "licence": "", **_corpus(data)},
        splits=_splits(model, data),
        pairs=_pairs(data),
        scores=found,
        licence=licence,
    )


def _template() -> Any:
    made = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    made.filters |= {
        "plain": lambda text: plain(str(text or "")),
        "shell_word": shell_word,
        "repr": repr,
        "quote_url": quote,
    }
    made.globals["table"] = table
    return made.from_string(files(__package__).joinpath("card.md").read_text(encoding="utf-8"))


def renamed(card: str, name: str) -> str:
    """Return a model card whose examples use the model by another name, such as OWNER/NAME on the hub."""
    # Python 3.11.2 never matches a possessive group with a backreference.
    card = re.sub(
        r"""from_pretrained\((['"])(?:\\.|(?!\1)[^\\\n]){0,500}\1\)""", lambda _: f"from_pretrained({name!r})", card
    )
    return re.sub(
        r"^(pyramidions (?:extract paper\.txt --method|segments) ).*?( paper\.txt)?$",
        lambda found: found[1] + shell_word(name) + (found[2] or ""),
        card,
        flags=re.MULTILINE,
    )


def _rows(model: SavedModel | SavedExtractor | SavedLanguageModel) -> dict[str, str]:
    parameters = f"{sum(p.numel() for p in model.network.parameters()) / 1e6:.1f}M"
    if isinstance(model, SavedLanguageModel):
        return {
            "parameters": parameters,
            "layers": f"{plain(model.config.layers)}, {model.config.embed_dim} wide",
            "attention": plain(model.config.self_attention),
            "boundaries": plain(model.config.boundaries),
            "segments": plain(model.config.segments),
            "alphabet": model.alphabet.about,
            "window": f"{model.window:,} characters",
        }
    config = model.config
    layers, rest = f"{config.encoder_layers}", "longer ones are read in pieces"
    reading, writing = {}, {}
    if isinstance(model, SavedModel):
        layers, long = f"{layers} + {model.config.decoder_layers}", model.config.decoding_long
        rest = "the rest is cut off its end" if long == "truncate" else f"longer ones are read by `--long {long}`"
        reading = {name: plain(value) for name, value in reading_of(model.config).items()}
        writing = {"longest summary": f"{model.max_target_positions} tokens", "decoding": _decoding(model)}
        poolings = spec_of(model.config).encoder.poolings
    else:
        writing = {"extract": _selection(model)}
        poolings = extractor_spec_of(model.config).encoder.poolings
    kept = [f"{pooling.length} vectors after layer {layer + 1}" for layer, pooling in poolings.items()]
    return {
        "parameters": parameters,
        "layers": f"{layers}, {config.embed_dim} wide",
        "attention among document positions": plain(config.self_attention),
        **reading,
        "pooling": f"{config.pooling}: {', '.join(kept)}" if kept else "none",
        "longest document": f"{model.max_source_positions} tokens; {rest}",
        "vocabulary": f"{model.tokenizer.vocab_size} pieces",
        **writing,
    }


def _decoding(model: SavedModel) -> str:
    config = model.config
    # One position is the end of the text.
    most = min(config.decoding_max_length, model.max_target_positions - 1)
    lengths = f"{min(config.decoding_min_length, most)} to {most} tokens"
    found = f"beam {config.decoding_beam}, {lengths}, length penalty {config.decoding_length_penalty:g}"
    repeats = config.decoding_no_repeat_ngram
    return f"{found}, no repeated {repeats}-grams" if repeats else found


def _selection(model: SavedExtractor) -> str:
    words = f"{WORDS} words" if model.extract_words is None else f"{model.extract_words} words, as in training"
    avoids = {
        "none": "repetitions allowed",
        "trigrams": "no repeated trigrams",
        "mmr": f"maximal marginal relevance, weight {model.mmr_weight:g}",
    }
    return f"at most {words}; {avoids[model.redundancy]}"


def _splits(model: Any, data: DataFolder | CharacterFolder | None) -> list[tuple[str, ...]]:
    """Return the row of each split; none without data."""
    if data is None:
        return []
    if isinstance(data, CharacterFolder):
        what, is_own = "alphabet", data.alphabet == model.alphabet
    else:
        what, is_own = "tokenizer", data.tokenizer() == model.tokenizer
    if not is_own:
        raise UserError(f"The data folder {data.path} was made with another {what} than the model's.")
    rows = []
    for split in data.splits:
        counts = data.manifest["splits"].get(split, {})
        try:
            if isinstance(data, CharacterFolder):
                numbers, digest = [counts["characters"]], data.manifest["files"][f"{split}.bin"]
            else:
                means = [counts[side]["mean"] for side in ("source_tokens", "target_tokens")]
                numbers, digest = [counts["documents"], *means], data.manifest["inputs"][split]["sha256"]
            rows.append((split, *(f"{number:,.0f}" for number in numbers), plain(digest)))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UserError(
                f"{data.manifest_path} must be as written by `pyramidions prepare`, but lacks what it says of {split}."
            ) from None
    return rows


def _pairs(data: DataFolder | CharacterFolder | None) -> dict[str, Any]:
    """Return what the manifest says of how documents of train were made of longer ones."""
    found = data.manifest["settings"].get("pairs", {}).get("train", {}) if isinstance(data, DataFolder) else {}
    return {"kind": None, "method": None, "sha256": None, **found}


def _corpus(data: DataFolder | CharacterFolder | None) -> dict[str, str]:
    """Return what the manifest says of the known corpus of train."""
    found = data.manifest["settings"].get("corpus") if isinstance(data, DataFolder) else None
    if not isinstance(found, dict) or "train" not in (found.get("splits") or ()):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}
