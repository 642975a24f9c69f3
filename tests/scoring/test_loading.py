"""Which pretrained models metrics take, and how the others are refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from small_encoders import SHAPE, TEXTS, randomized, save_bert, save_byte_level, save_roberta, transformers
from small_tokenizers import bart

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders import embedder as embedding
from pyramidions.scoring.encoders.embedder import embedder
from pyramidions.scoring.encoders.loading import Head, load
from pyramidions.scoring.encoders.readers import QuestionAnswerer

IDS = {"vocab_size": bart().get_vocab_size(), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
SMALL_BART = {
    **dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 16),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "decoder_layers"), 2),
    "encoder_layers": 3,
}
SMALL_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2, "decoder_start_token_id": 1}
# Models by the names of their configs, and how many tokens they read.
FAMILIES: dict[str, tuple[dict[str, Any], int | None]] = {
    "DistilBert": ({"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32}, 32),
    "Albert": ({**SHAPE, "embedding_size": 8}, 32),
    "DebertaV2": ({**SHAPE, "relative_attention": True, "pos_att_type": ["p2c"]}, 32),
    "Longformer": ({**SHAPE, "attention_window": [4, 4, 8]}, 30),
    "Bart": (SMALL_BART, 32),
    "T5": (SMALL_T5, None),
}


def saved(folder: Path, name: str, settings: dict[str, Any]) -> Any:
    # T5 has no end of positions.
    positions = {} if name == "T5" else {"max_position_embeddings": 32}
    config = getattr(transformers, f"{name}Config")(**{**IDS, **positions, **settings})
    model = randomized(getattr(transformers, f"{name}Model")(config))
    model.save_pretrained(folder)
    save_byte_level(folder, bart())
    return model


@pytest.mark.parametrize("name", FAMILIES)
def test_the_first_layers_of_any_encoder_give_the_vectors_of_that_layer(tmp_path: Path, name: str) -> None:
    settings, length = FAMILIES[name]
    model = saved(tmp_path / "model", name, settings)
    found = embedder(str(tmp_path / "model"), 2, "cpu")
    assert (found.layer, found.length) == (2, length)
    assert embedder(str(tmp_path / "model"), 2, "cpu") is found  # one serves all metrics
    tokens, vectors = found.embed(TEXTS)[0]
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        states = encoder(torch.from_numpy(tokens.ids)[None], output_hidden_states=True).hidden_states
    expected = states[2][0]
    if name == "T5":
        # Its last norm follows whatever layer is the last.
        expected = encoder.final_layer_norm(expected)
    np.testing.assert_allclose(vectors.numpy(), expected.detach().numpy(), atol=1e-4)


def test_half_precision_weights_are_computed_with_in_single_precision(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    transformers.AutoModel.from_pretrained(folder, dtype=torch.float16).save_pretrained(folder)
    assert embedder(str(folder), None, "cpu").embed(TEXTS)[0].vectors.dtype == torch.float32


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def cut(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def with_code(folder: Path) -> None:
    own = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    (folder / "config.json").write_text(json.dumps(own))
    (folder / "mine.py").write_text("raise SystemExit('it ran')")


def config(content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(content)


def reads_left_to_right(folder: Path) -> None:
    saved(folder, "GPT2", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32})


def without_head(folder: Path) -> None:
    """Say that a model answers questions whose weights do not."""
    settings = json.loads((save_roberta(folder) / "config.json").read_text())
    config(json.dumps(settings | {"architectures": ["RobertaForQuestionAnswering"]}))(folder)


def harmed(harm: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: harm(save_bert(folder))


ANSWERS, VECTORS = QuestionAnswerer.head, embedding.VECTORS


@pytest.mark.parametrize(
    ("make", "head"),
    [
        (harmed(pickled), VECTORS),
        (harmed(with_code), VECTORS),
        (harmed(cut), VECTORS),
        (harmed(config('{"model_type": "mine"}')), VECTORS),
        (harmed(config("{")), VECTORS),
        (harmed(config('{"task": 1}')), VECTORS),
        (harmed(lambda folder: (folder / "config.json").unlink()), VECTORS),
        (harmed(lambda folder: (folder / "tokenizer.json").unlink()), VECTORS),
        (harmed(lambda folder: (folder / "tokenizer.json").write_text("{")), VECTORS),
        # More pieces than vectors.
        (lambda folder: save_byte_level(save_bert(folder), bart()), VECTORS),
        (reads_left_to_right, VECTORS),
        (lambda folder: save_bert(folder, is_decoder=True), VECTORS),
        (lambda folder: save_bert(folder, "BertForMaskedLM"), ANSWERS),
        (without_head, ANSWERS),
        (Path.touch, VECTORS),
        (lambda folder: None, VECTORS),
    ],
)
def test_a_damaged_or_foreign_model_is_refused(make: Callable[[Path], object], head: Head, tmp_path: Path) -> None:
    make(tmp_path / "model")
    with pytest.raises(UserError, match=rf"`{head.option}` must .*{tmp_path}/model"):
        load(str(tmp_path / "model"), head, "cpu")


def test_a_device_or_library_that_is_not_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("`device`"):
        load(str(tmp_path), VECTORS, "tpu")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with refused("'transformers"):
        load(str(tmp_path), VECTORS, "cpu")
