"""The model card of an exported language model of characters."""

from collections.abc import Sequence

from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain, shell_word
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.inference.card_scores import table
from pyramidions.inference.front_matter import front_matter, licence_fields
from pyramidions.inference.saved_language_model import SavedLanguageModel


def language_model_card(
    model: SavedLanguageModel,
    name: str,
    data: CharacterFolder | None = None,
    licence: str | None = None,
    *,
    languages: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> str:
    """Return a model card in Markdown, which also states what is unknown.

    Args:
        model: the model.
        name: its heading.
        data: what it was trained on.
        licence: of the weights.
        languages: of its texts, as ISO 639 codes; its alphabet's if empty.
        datasets: names on the Hugging Face hub of the datasets that it was trained on.

    Raises:
        UserError: the data have another alphabet, or a file is damaged.
    """
    fields = {
        "library_name": "pyramidions",
        "tags": ["character-language-model", "dynamic-pooling"],
        "language": list(languages) or [model.alphabet.language],
        **licence_fields(licence),
        "datasets": list(datasets),
    }
    sections = [
        front_matter(fields),
        f"# {plain(name)}\n\nPredicts characters, and draws segments in texts; a language model with dynamic pooling "
        "(Nawrot et al. 2023).",
        f"```bash\npyramidions segments {shell_word(name)} paper.txt --explain page.html\n```",
        f"## Model\n\n{table(('', ''), _rows(model).items())}",
        f"## Training data\n\n{'Not said.' if data is None else _data(model, data)}",
        f"## Licence\n\n{plain(licence or '') or 'Not said.'}",
        "## Limits\n\nIt reads the letters of one alphabet and white space; all else is cleaned away. Segments help to "
        "predict the next character, and need not be words.",
    ]
    return "\n\n".join(sections) + "\n"


def _rows(model: SavedLanguageModel) -> dict[str, str]:
    config, millions = model.config, sum(p.numel() for p in model.network.parameters()) / 1e6
    return {
        "parameters": f"{millions:.1f}M",
        "layers": f"{plain(config.layers)}, {config.embed_dim} wide",
        "attention": plain(config.self_attention),
        "boundaries": plain(config.boundaries),
        "segments": plain(config.segments),
        "alphabet": f"{model.alphabet.language}, {len(model.alphabet.letters)} letters, the space"
        + ", the line end" * model.alphabet.lines,
        "window": f"{model.window:,} characters",
    }


def _data(model: SavedLanguageModel, data: CharacterFolder) -> str:
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
