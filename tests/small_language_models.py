"""Tiny language models of every kind, with the same weights each time."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyramidions.models import LANGUAGE_MODEL_PRESETS, LanguageModelConfig, build_language_model, language_model_preset
from pyramidions.models.formats import FORMAT
from pyramidions.nn import LanguageModel
from pyramidions.text.alphabets import recorded_alphabet

VOCABULARY, PAD, SPACE = 12, 1, 4
_WINDOWS = ["relative_window(window=2)", *2 * ["relative_window(window=4, dilation=2, dilated_heads=1)"]]
#: Small shapes of presets whose layers differ from each other.
OWN_LAYERS = {"longformer_lm": {"layers": "3", "self_attention": " | ".join(_WINDOWS)}}
WITHOUT_SEGMENTS = ("hourglass_vanilla", "longformer_lm")
#: by name: a preset, and the fields that differ
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name.removeprefix("hourglass_"): (name, OWN_LAYERS.get(name, {})) for name in LANGUAGE_MODEL_PRESETS},
    "last": ("hourglass_whitespace", {"segments": "last"}),
    "one part": ("hourglass_fixed_2", {"layers": "0,1,0"}),
    "pre-norm": ("hourglass_gumbel", {"normalize_before": True}),
    "reversible": ("hourglass_whitespace", {"normalize_before": True, "stack": "reversible"}),
    "full attention": ("hourglass_gumbel", {"self_attention": "full"}),
    "hashing": ("hourglass_fixed_3", {"self_attention": "lsh"}),
    "nested": ("hourglass_whitespace", {"layers": "1,1,1,1,1", "boundaries": "whitespace | fixed"}),
    "smoothing": ("hourglass_gumbel", {"upsampling": "smoothing"}),
    "nested routing": ("hourglass_routing", {"layers": "1,1,1,1,1", "boundaries": "routing | routing(factor=2)"}),
    "nested and learned": ("hourglass_gumbel", {"layers": "1,1,1,1,1", "boundaries": "gumbel | gumbel(prior=0.5)"}),
}


def fields(kind: str, **overrides: Any) -> tuple[str, dict[str, Any]]:
    """Return the preset of a kind, and fields that make it tiny."""
    name, chosen = KINDS[kind]
    shape = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "layers": "1,2,1"}
    off = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    return name, {**shape, **off, **chosen, **overrides}


def small(kind: str, seed: int = 0, **overrides: Any) -> LanguageModel:
    """Return a model whose weights, norms and biases among them, are far from those that hide a mistake."""
    name, chosen = fields(kind, **overrides)
    return _built(language_model_preset(name, **chosen), VOCABULARY, seed)


def _built(config: LanguageModelConfig, vocab_size: int, seed: int) -> LanguageModel:
    torch.manual_seed(seed)
    model = build_language_model(config, vocab_size, PAD, SPACE)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model.eval()


def texts(*lengths: int, seed: int = 0) -> Tensor:
    """Return texts of these lengths, padded on the right: (B, L)."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(SPACE, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    for row, length in enumerate(lengths):
        tokens[row, length:] = PAD
    return tokens


def saved(folder: Path, kind: str, window: int = 64, seed: int = 0, alphabet: str = "en", **overrides: Any) -> Path:
    """Return a checkpoint of an English model, as fairseq-train saves it as far as it concerns us."""
    name, chosen = fields(kind, **overrides)
    config = language_model_preset(name, **chosen)
    model = _built(config, recorded_alphabet(alphabet).vocab_size, seed)
    state = {
        "cfg": {
            "model": {"_name": name, "config_format": FORMAT, **asdict(config)},
            "task": {"_name": "character_language_modeling", "tokens_per_sample": window},
        },
        "model": {f"decoder.core.{each}": weight for each, weight in model.state_dict().items()},
        "task_state": {"characters": alphabet},
    }
    torch.save(state, folder / "model.pt")
    return folder / "model.pt"
