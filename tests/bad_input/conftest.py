"""What every case starts from: whole inputs of each kind, tiny."""

import json
import random
from dataclasses import asdict
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from invoking import succeed

from pyramidions.inference import export_model, load_model
from pyramidions.models import build, preset
from pyramidions.models.formats import FORMAT
from pyramidions.text.tokenizer import PAD, Tokenizer

WORDS = [a + b for a in "ba de ki lo mu ra se ti".split() for b in "ban den kin lon mur ras sel tin".split()]


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the cases off the network, and off what the hub knows of whoever runs them."""
    for name, value in {
        "HF_HUB_OFFLINE": True,
        "HF_HUB_CACHE": "nothing",
        "HF_TOKEN_PATH": "nothing",
        "HF_STORED_TOKENS_PATH": "nothing",
    }.items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def some_text(draw: random.Random, sentences: int) -> str:
    """Return sentences of made-up words."""
    return " ".join(" ".join(draw.choices(WORDS, k=6)) + "." for _ in range(sentences))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a whole input of each kind."""
    folder, draw = tmp_path_factory.mktemp("whole"), random.Random(7)
    for split, count in (("train", 12), ("test", 4)):
        (folder / "papers").mkdir(exist_ok=True)
        lines = [
            json.dumps({"id": f"{split}-{i}", "article": some_text(draw, 9), "abstract": some_text(draw, 2)})
            for i in range(count)
        ]
        (folder / "papers" / f"{split}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    succeed("prepare", folder / "papers", "--out", folder / "data", "--vocab-size", 60, "--workers", 1)
    (folder / "summaries.txt").write_text("".join(f"{some_text(draw, 2)}\n" for _ in range(4)))
    (folder / "paper.txt").write_text(some_text(draw, 9))
    torch.save(_state(folder / "data" / "sentencepiece.model"), folder / "whole.pt")
    export_model(load_model(folder / "whole.pt"), folder / "export", "# A model\n")
    return folder


def _state(tokenizer: Path) -> dict[str, object]:
    """Return what fairseq-train saves of an untrained model, as far as it concerns us."""
    size = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "decoder_layers": 1, "max_source_positions": 64}
    config = preset("pyramidion", **size, self_attention="blockwise(block_size=16)", pooling_lengths="16,4")
    torch.manual_seed(1)
    model_bytes = tokenizer.read_bytes()
    model = build(config, Tokenizer.from_bytes(model_bytes).vocab_size, PAD)
    return {
        "cfg": {"model": {"_name": "pyramidion", "config_format": FORMAT, **asdict(config)}},
        "model": {name.replace("coder.", "coder.core.", 1): weight for name, weight in model.state_dict().items()},
        "task_state": {"max_source_positions": 64, "max_target_positions": 16, "tokenizer": model_bytes},
        "last_optimizer_state": {},
    }
