"""The model card of an exported model."""

from pathlib import Path
from shlex import quote
from typing import Any

from pyramidions.data.folder import DataFolder
from pyramidions.errors import UserError
from pyramidions.inference.extractor import WORDS
from pyramidions.inference.saved_model import SavedExtractor, SavedModel
from pyramidions.markdown import plain
from pyramidions.models.parse import extractor_spec_of, spec_of
from pyramidions.scoring import LABELS
from pyramidions.strict_json import parse_json


def model_card(
    model: SavedModel | SavedExtractor,
    name: str,
    data: DataFolder | None = None,
    scores: Path | None = None,
    licence: str | None = None,
) -> str:
    """Return a model card in Markdown, which also states what is unknown.

    Args:
        model: the model.
        name: its heading.
        data: what it was trained on.
        scores: a file written by `pyramidions score --json`.
        licence: of the weights.

    Raises:
        UserError: the data was made with another tokenizer, or a file is damaged.
    """
    purpose, use, limits = _SUMMARIZES if isinstance(model, SavedModel) else _EXTRACTS
    sections = [
        f"# {plain(name)}\n\n{purpose}; a Pyramidion Transformer (Pietruszka et al. 2022).",
        use.format(name=repr(name), word=quote(name)),
        f"## Model\n\n{_table(('', ''), _rows(model).items())}",
        f"## Training data\n\n{'Not said.' if data is None else _data(model, data)}",
        f"## Scores\n\n{'Not said.' if scores is None else _scores(scores)}",
        f"## Licence\n\n{plain(licence or '') or 'Not said.'}",
        f"## Limits\n\n{limits}",
    ]
    return "\n\n".join(sections) + "\n"


# What a model does, how to use it, and what to beware of.
_SUMMARIZES = (
    "Summarizes long documents",
    "```python\nfrom pyramidions import Summarizer\n\n"
    'Summarizer.from_pretrained({name}).summarize(["A long document ..."])\n```',
    "Summaries contain mistakes that read well: check them against the document before you use them.",
)
_EXTRACTS = (
    "Extracts sentences from long documents",
    "```bash\npyramidions extract paper.txt --method {word}\n```",
    "Extracts are sentences of the document, but out of their context they may mislead.",
)


def _rows(model: SavedModel | SavedExtractor) -> dict[str, str]:
    config, millions = model.config, sum(p.numel() for p in model.network.parameters()) / 1e6
    layers = f"{config.encoder_layers}"
    if isinstance(model, SavedModel):
        layers += f" + {model.config.decoder_layers}"
        summary = {"longest summary": f"{model.max_target_positions} tokens", "decoding": _decoding(model)}
    else:
        summary = {"extract": _selection(model)}
    return {
        "parameters": f"{millions:.1f}M",
        "layers": f"{layers}, {config.embed_dim} wide",
        "attention among document positions": plain(f"{config.self_attention} {config.self_attention_args}"),
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
    table = _table(("split", "documents", "tokens of a document", "of its summary", "SHA-256 of the input"), rows)
    pairs = data.manifest["settings"].get("pairs", {}).get("train", {})
    return "\n\n".join([table, *_how_to_read(pairs)])


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


def _scores(path: Path) -> str:
    try:
        found = parse_json(path.read_bytes())
        # A file of scores has the figures of the metrics that were known when it was written.
        names = [name for name in LABELS if all(name in means for means in found["systems"].values())]
        rows = [
            (
                plain(system),
                *(f"{m['mean']:.1f} [{m['low']:.1f}, {m['high']:.1f}]" for m in (means[name] for name in names)),
            )
            for system, means in found["systems"].items()
        ]
        signature = plain(found["signature"])
    except FileNotFoundError:
        raise UserError(f"The scores {path} do not exist.") from None
    except IsADirectoryError:
        raise UserError(f"The scores {path} must be a file, but are a folder.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} must be as written by `pyramidions score --json`.") from None
    return f"{_table(('', *(LABELS[name] for name in names)), rows)}\n\nMeans with 95% intervals. {signature}"


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)
