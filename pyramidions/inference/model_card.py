"""The model card of an exported model."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_url

from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain, shell_word
from pyramidions.data.folder import DataFolder
from pyramidions.inference.card_scores import read_scores, scores_table, table
from pyramidions.inference.extractor import WORDS
from pyramidions.inference.front_matter import card_fields, front_matter
from pyramidions.inference.saved_model import SavedExtractor, SavedModel
from pyramidions.inference.settings import reading_of
from pyramidions.models.parse import extractor_spec_of, spec_of


def model_card(
    model: SavedModel | SavedExtractor,
    name: str,
    data: DataFolder | None = None,
    scores: Path | None = None,
    licence: str | None = None,
    *,
    for_transformers: bool = False,
    languages: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> str:
    """Return a model card in Markdown, which also states what is unknown.

    Its front matter is what the Hugging Face hub searches; it holds what is known, and nothing else.

    Args:
        model: the model.
        name: its heading.
        data: what it was trained on.
        scores: a file written by `pyramidions score --json`.
        licence: of the weights.
        for_transformers: the model is exported in the format of transformers.
        languages: of documents and summaries, as ISO 639 codes.
        datasets: names on the hub of the datasets that it was trained on; if it is one, the scores are on it. Without
            any, that of the data is named.

    Raises:
        UserError: the data was made with another tokenizer, or a file is damaged.
    """
    purpose, use, limits = _SUMMARIZES if isinstance(model, SavedModel) else _EXTRACTS
    if isinstance(model, SavedModel) and model.queries:
        purpose, use = _ANSWERS
    kind = "a Pyramidion Transformer (Pietruszka et al. 2022)"
    if isinstance(model, SavedModel) and for_transformers:
        kind, use = "a Transformer for the library transformers", _USE_IN_TRANSFORMERS + _marks(model)
    figures = None if scores is None else read_scores(scores).systems
    # What is wrong with the data is told before the front matter asks what they are.
    training = "Not said." if data is None else _data(model, data)
    sections = [
        front_matter(
            card_fields(model, name, figures, licence, for_transformers, languages, datasets, _corpus(data).get("hub"))
        ),
        f"# {plain(name)}\n\n{purpose}; {kind}.",
        use.format(name=repr(name), word=shell_word(name)),
        f"## Model\n\n{table(('', ''), _rows(model).items())}",
        *_started_from(model),
        f"## Training data\n\n{training}",
        f"## Scores\n\n{'Not said.' if scores is None else scores_table(scores)}",
        f"## Licence\n\n{plain(licence or '') or 'Not said.'}",
        f"## Limits\n\n{limits}",
    ]
    return "\n\n".join(sections) + "\n"


def renamed(card: str, name: str) -> str:
    """Return a model card whose examples use the model by another name, such as OWNER/NAME on the hub."""
    card = re.sub(
        r"""from_pretrained\((['"])(?:\\.|(?!\1)[^\\\n])*+\1\)""", lambda _: f"from_pretrained({name!r})", card
    )
    return re.sub(
        r"^(pyramidions extract paper\.txt --method ).*$",
        lambda found: found[1] + shell_word(name),
        card,
        flags=re.MULTILINE,
    )


# What a model does, how to use it, and what to beware of.
_SUMMARIZES = (
    "Summarizes long documents",
    "```python\nfrom pyramidions import Summarizer\n\n"
    'Summarizer.from_pretrained({name}).summarize(["A long document ..."])\n```',
    "Summaries contain mistakes that read well: check them against the document before you use them.",
)
_ANSWERS = (
    "Answers queries about long documents",
    _SUMMARIZES[1].replace('"])', '"], query="What ...?")'),
)
_EXTRACTS = (
    "Extracts sentences from long documents",
    "```bash\npyramidions extract paper.txt --method {word}\n```",
    "Extracts are sentences of the document, but out of their context they may mislead.",
)


_USE_IN_TRANSFORMERS = (
    "```python\nfrom transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n\n"
    "tokenizer = AutoTokenizer.from_pretrained({name})\n"
    "model = AutoModelForSeq2SeqLM.from_pretrained({name})\n"
    'inputs = tokenizer("A long document ...", truncation=True, return_tensors="pt")\n'
    "summary = model.generate(**inputs)[0]\n"
    "print(tokenizer.decode(summary, skip_special_tokens=True))\n```"
)


def _marks(model: SavedModel) -> str:
    """Say how transformers is told of global tokens, which no config of it has."""
    count = model.config.global_tokens
    if not count or "sliding_window" not in model.config.self_attention:
        return ""
    return (
        f"\n\nThe first {'token is' if count == 1 else f'{count} tokens are'} global. Before `generate`:\n\n"
        '```python\nmask = inputs["attention_mask"].clone()\n'
        f'mask[:, {count}:] = 0\ninputs["global_attention_mask"] = mask\n```'
    )


def _started_from(model: SavedModel | SavedExtractor) -> list[str]:
    """Return the section about the pretrained model, if there is one."""
    origin = model.origin if isinstance(model, SavedModel) else None
    if origin is None:
        return []
    name, licence = plain(origin.source), plain(origin.licence or "") or "not said"
    if origin.on_hub:
        place = f"[{name}](https://huggingface.co/{quote_url(origin.source)}) at commit {plain(origin.revision or '')}"
    else:
        place = f"the folder {name}"
    family = {"bart": "BART", "led": "LED", "pegasus": "PEGASUS"}.get(origin.family, plain(origin.family))
    return [f"## Source\n\nThe weights started from {place}, a {family}; its licence: {licence}."]


def _rows(model: SavedModel | SavedExtractor) -> dict[str, str]:
    config, millions = model.config, sum(p.numel() for p in model.network.parameters()) / 1e6
    layers = f"{config.encoder_layers}"
    if isinstance(model, SavedModel):
        layers += f" + {model.config.decoder_layers}"
        summary = {"longest summary": f"{model.max_target_positions} tokens", "decoding": _decoding(model)}
        reading = {name: plain(value) for name, value in reading_of(model.config).items()}
    else:
        reading = {}
        summary = {"extract": _selection(model)}
    return {
        "parameters": f"{millions:.1f}M",
        "layers": f"{layers}, {config.embed_dim} wide",
        "attention among document positions": plain(config.self_attention),
        **reading,
        "pooling": _pooling(model),
        "longest document": _longest_document(model),
        "vocabulary": f"{model.tokenizer.vocab_size} pieces",
        **summary,
    }


def _longest_document(model: SavedModel | SavedExtractor) -> str:
    rest = "the rest is cut off its end" if isinstance(model, SavedModel) else "longer ones are read in pieces"
    return f"{model.max_source_positions} tokens; {rest}"


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


def _pooling(model: SavedModel | SavedExtractor) -> str:
    spec = spec_of(model.config) if isinstance(model, SavedModel) else extractor_spec_of(model.config)
    kept = [f"{pooling.length} vectors after layer {layer + 1}" for layer, pooling in spec.encoder.poolings.items()]
    return f"{model.config.pooling}: {', '.join(kept)}" if kept else "none"


def _data(model: SavedModel | SavedExtractor, data: DataFolder) -> str:
    if data.tokenizer().model_bytes != model.tokenizer.model_bytes:
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
    pairs = data.manifest["settings"].get("pairs", {}).get("train", {})
    return "\n\n".join([*_from(_corpus(data)), splits, *_how_to_read(pairs)])


def _corpus(data: DataFolder | None) -> dict[str, str]:
    """Return what the manifest says of the known corpus that train comes from; nothing if it names none."""
    found = None if data is None else data.manifest["settings"].get("corpus")
    if not isinstance(found, dict) or "train" not in (found.get("splits") or ()):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _from(corpus: dict[str, str]) -> list[str]:
    """Return the sentence about a known corpus."""
    if "name" not in corpus:
        return []
    config = f", configuration {corpus['config']}" if "config" in corpus else ""
    hub = f" ({corpus['hub']} on the Hugging Face hub)" if "hub" in corpus else ""
    licence = corpus.get("licence", "not said")
    return [plain(f"Documents of the corpus {corpus['name']}{config}{hub}; its licence: {licence}.")]


def _how_to_read(pairs: dict[str, Any]) -> list[str]:
    """Return how to read long documents with a model whose training documents were made of others.

    Args:
        pairs: the manifest's entry for train.
    """
    if pairs.get("kind") == "sections":
        return ["Documents of train are sections with their parts of a summary: use `--long sections`."]
    if pairs.get("kind") != "sentences":
        return []
    method = plain(str(pairs.get("method")))
    if method == "model":
        sha256 = plain(str(pairs.get("sha256")))
        return [
            "Documents of train are sentences that a trained extractor selected: use `--long extract --select` with "
            f"this extractor (SHA-256 of its weights, tokenizer and length: {sha256})."
        ]
    if method == "oracle":
        return [
            "Documents of train are sentences that the oracle selected by the reference summary: use `--long extract`, "
            "with `--select` and a trained extractor if you have one."
        ]
    return [f"Documents of train are sentences that {method} selected: use `--long extract --select {method}`."]
