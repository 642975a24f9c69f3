"""Models of metrics from the hub."""

from pathlib import Path

import pytest
from hub_stand_in import Hub
from small_encoders import TEXTS, save_bert

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders.embedder import embedder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_encoder_on_the_hub_is_named_with_its_commit(hub: Hub, tmp_path: Path) -> None:
    held = files(save_bert(tmp_path / "bert"))
    sha = hub.add("owner/bert", held | {"pytorch_model.bin": b"x", "README.md": b"x"})
    found = embedder("owner/bert", 2, "cpu")
    assert found.signature().startswith(f"owner/bert@{sha[:10]} | layer 2 | ")
    assert len(found.embed(TEXTS)) == 3
    assert hub.downloaded() == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def test_a_model_of_another_kind_is_refused_before_its_weights_are_downloaded(hub: Hub, tmp_path: Path) -> None:
    hub.add("owner/gpt", {"config.json": b'{"model_type": "gpt2"}', "model.safetensors": b"x"})
    with pytest.raises(UserError):
        embedder("owner/gpt", None, "cpu")
    assert hub.downloaded() == {"config.json"}


def test_a_model_without_safetensors_is_refused(hub: Hub, tmp_path: Path) -> None:
    held = files(save_bert(tmp_path / "bert"))
    held["pytorch_model.bin"] = held.pop("model.safetensors")
    hub.add("owner/bert", held)
    with pytest.raises(UserError):
        embedder("owner/bert", None, "cpu")
    assert "pytorch_model.bin" not in hub.downloaded()
