"""The model card of an exported model, in Markdown."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_url

from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain, shell_word
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.folder import DataFolder
from pyramidions.extract.selection import WORDS
from pyramidions.models.parse import extractor_spec_of, spec_of
from pyramidions.pretrained.card_data import CardScores, front_matter, table
from pyramidions.pretrained.saved_model import SavedExtractor, SavedLanguageModel, SavedModel
from pyramidions.pretrained.settings import reading_of
from pyramidions.text.alphabets import LETTERS
from pyramidions.text.tokenizer import DOCUMENT_SEPARATOR

_CARD = """\
{front}# {name}

{purpose}

{use}

## Model

{model}

{source}## Training data

{data}

{scores}## Licence

{licence}

## Limits

{limits}
"""
_SUMMARIZER = """\
```python
from pyramidions import Summarizer

Summarizer.from_pretrained({name!r}).summarize(["A long document ..."])
# In transformers, after `import pyramidions.hf`: AutoModelForSeq2SeqLM.from_pretrained({name!r})
```"""
_TRANSFORMERS = """\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({name!r})
model = AutoModelForSeq2SeqLM.from_pretrained({name!r})
inputs = tokenizer({document!r}, truncation=True, return_tensors="pt")
summary = model.generate(**inputs)[0]
print(tokenizer.decode(summary, skip_special_tokens=True))
```"""
# No config of transformers has them.
_GLOBAL_TOKENS = """

The first {tokens} global. Before `generate`:

```python
mask = inputs["attention_mask"].clone()
mask[:, {count}:] = 0
inputs["global_attention_mask"] = mask
```"""
_SEPARATORS = """
inputs["global_attention_mask"] |= inputs["input_ids"] == tokenizer.convert_tokens_to_ids("{name}")
```

{name} stands behind each of several documents, and is global, too."""
_NOT_SAID = "Not said."


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

    Args:
        model: the model.
        name: its heading.
        data: what it was trained on.
        scores: a file written by `pyramidions score --json`.
        licence: of the weights.
        for_transformers: the model is exported in the format of transformers.
        languages: of documents and summaries, as ISO 639 codes; a language model has its alphabet's.
        datasets: names on the hub of the datasets that it was trained on; if it is one, the scores are on it. Without
            any, that of the data is named.
    """
    found = None if scores is None else CardScores.read(scores)
    about: dict[str, Any] = {"library_name": "transformers" if for_transformers else "pyramidions"}
    parts = {"source": "", "scores": "", "data": _NOT_SAID if data is None else _data(model, data)}
    if isinstance(model, SavedLanguageModel):
        parts |= {
            "purpose": "Predicts characters, and draws segments in texts; a language model with dynamic pooling "
            "(Nawrot et al. 2023).",
            "use": f"```bash\npyramidions segments {shell_word(name)} paper.txt\n```",
            "limits": f"{model.alphabet.limits} Segments help to predict the next character, and need not be words.",
        }
        about["tags"] = ["character-language-model", "dynamic-pooling"]
        languages = languages or [each for each in LETTERS if each == model.alphabet.language]
    else:
        parts |= _of_summaries(model, name, for_transformers)
        parts["scores"] = f"## Scores\n\n{_NOT_SAID if found is None else found.tables()}\n\n"
        extracts, pools = isinstance(model, SavedExtractor), model.config.pooling_lengths is not None
        about["pipeline_tag"] = "summarization"
        about["tags"] = ["long-documents", *["extractive-summarization"] * extracts, *["pooling"] * pools]
        if isinstance(model, SavedModel) and (origin := model.origin) is not None:
            parts["source"] = _source(model)
            about["tags"].append(origin.family)
            about["base_model"] = origin.source if origin.on_hub else None
        if not datasets:
            # The scores may be on another one.
            about["datasets"] = [hub] if (hub := _corpus(data).get("hub")) else None
    about["language"] = list(languages)
    return _CARD.format(
        front=front_matter(name, licence, datasets, found, about),
        name=plain(name),
        model=table(("", ""), _rows(model).items()),
        licence=plain(licence or "") or _NOT_SAID,
        **parts,
    )


def renamed(card: str, name: str) -> str:
    """Return a model card whose examples use the model by another name, such as OWNER/NAME on the hub."""
    card = re.sub(
        r"""from_pretrained\((['"])(?:\\.|(?!\1)[^\\\n])*+\1\)""", lambda _: f"from_pretrained({name!r})", card
    )
    return re.sub(
        r"^(pyramidions (?:extract paper\.txt --method|segments) ).*?( paper\.txt)?$",
        lambda found: found[1] + shell_word(name) + (found[2] or ""),
        card,
        flags=re.MULTILINE,
    )


def _of_summaries(model: SavedModel | SavedExtractor, name: str, for_transformers: bool) -> dict[str, str]:
    if isinstance(model, SavedExtractor):
        purpose = "Extracts sentences from long documents"
        use = f"```bash\npyramidions extract paper.txt --method {shell_word(name)}\n```"
        limits = "Extracts are sentences of the document, but out of their context they may mislead."
    else:
        purpose = "Answers queries about long documents" if model.queries else "Summarizes long documents"
        document = f"{model.source_prefix}A long document ..."
        use = (_TRANSFORMERS if for_transformers else _SUMMARIZER).format(name=name, document=document)
        if model.queries:
            use = use.replace('"])', '"], query="What ...?")')
        count = model.config.global_tokens
        if for_transformers and count and "sliding_window" in model.config.self_attention:
            tokens = "token is" if count == 1 else f"{count} tokens are"
            use += _GLOBAL_TOKENS.format(tokens=tokens, count=count)
            if model.config.global_markers:
                use = use.removesuffix("\n```") + _SEPARATORS.format(name=DOCUMENT_SEPARATOR)
        limits = "Summaries contain mistakes that read well: check them against the document before you use them."
    kind = "Transformer for the library transformers" if for_transformers else None
    return {
        "purpose": f"{purpose}; a {kind or 'Pyramidion Transformer (Pietruszka et al. 2022)'}.",
        "use": use,
        "limits": limits,
    }


def _source(model: SavedModel) -> str:
    origin = model.origin
    assert origin is not None
    name, licence = plain(origin.source), plain(origin.licence or "") or "not said"
    if origin.on_hub:
        place = f"[{name}](https://huggingface.co/{quote_url(origin.source)}) at commit {plain(origin.revision or '')}"
    else:
        place = f"the folder {name}"
    family = plain(origin.family)
    return f"## Source\n\nThe weights started from {place}, of the family {family}; its licence: {licence}.\n\n"


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


def _data(model: Any, data: DataFolder | CharacterFolder) -> str:
    if isinstance(data, CharacterFolder):
        return _characters(model, data)
    if data.tokenizer() != model.tokenizer:
        raise UserError(f"The data folder {data.path} was made with another tokenizer than the model's.")
    rows = []
    for split in data.splits:
        counts, origin = data.manifest["splits"].get(split), data.manifest["inputs"].get(split, {})
        if counts is None or not isinstance(origin.get("sha256"), str):
            raise UserError(
                f"{data.manifest_path} must be as written by `pyramidions prepare`, but lacks inputs.{split}.sha256."
            )
        means = (f"{counts[side]['mean']:,.0f}" for side in ("source_tokens", "target_tokens"))
        rows.append((split, f"{counts['documents']:,}", *means, plain(origin["sha256"])))
    splits = table(("split", "documents", "tokens of a document", "of its summary", "SHA-256 of the input"), rows)
    corpus, paragraphs = _corpus(data), [splits]
    if "name" in corpus:
        config = f", configuration {corpus['config']}" if "config" in corpus else ""
        hub = f" ({corpus['hub']} on the Hugging Face hub)" if "hub" in corpus else ""
        licence = corpus.get("licence", "not said")
        paragraphs.insert(0, plain(f"Documents of the corpus {corpus['name']}{config}{hub}; its licence: {licence}."))
    pairs = data.manifest["settings"].get("pairs", {}).get("train", {})
    return "\n\n".join([*paragraphs, *_how_to_read(pairs)])


def _characters(model: Any, data: CharacterFolder) -> str:
    if data.alphabet != model.alphabet:
        raise UserError(
            f"The data folder {data.path} must be of the model's alphabet {model.alphabet.name!r}, but is of "
            f"{data.alphabet.name!r}."
        )
    rows = []
    for split in data.splits:
        count, digest = data.manifest["splits"][split].get("characters"), data.manifest["files"].get(f"{split}.bin")
        if not isinstance(count, int) or not isinstance(digest, str):
            raise UserError(
                f"{data.manifest_path} must be as written by `pyramidions prepare`, but lacks what it says of {split}."
            )
        rows.append((split, f"{count:,}", plain(digest)))
    return table(("split", "characters", "SHA-256 of their ids"), rows)


def _corpus(data: DataFolder | CharacterFolder | None) -> dict[str, str]:
    """Return what the manifest says of the known corpus of train."""
    found = data.manifest["settings"].get("corpus") if isinstance(data, DataFolder) else None
    if not isinstance(found, dict) or "train" not in (found.get("splits") or ()):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _how_to_read(pairs: Mapping[str, Any]) -> list[str]:
    """Describe how a model reads long documents that was trained on parts of some, given the manifest's entry."""
    kind, method = pairs.get("kind"), plain(str(pairs.get("method")))
    if kind == "sections":
        return ["Documents of train are sections with their parts of a summary: use `--long sections`."]
    if kind == "single sentences":
        return ["Documents of train are single sentences, rewritten to those of a summary: use `--long rewrite`."]
    if kind != "sentences":
        return []
    by, use = method, f"`--long extract --select {method}`"
    if method == "model":
        by, weights = "a trained extractor", plain(str(pairs.get("sha256")))
        use = f"`--long extract --select` with this extractor (SHA-256 of its weights, tokenizer and length: {weights})"
    elif method == "oracle":
        by = "the oracle"
        use = "`--long extract`, with `--select` and a trained extractor if you have one"
    by += " selected by the reference summary" if method == "oracle" else " selected"
    return [f"Documents of train are sentences that {by}: use {use}."]
