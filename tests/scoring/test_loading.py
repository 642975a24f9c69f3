"""Which pretrained models metrics take, and how the others are refused."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_encoders import SHAPE, TEXTS, randomized, save_bert, save_byte_level, save_roberta, transformers, wordpiece
from small_tokenizers import bart

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders.embedder import embedder
from pyramidions.scoring.encoders.loading import ANSWERS, ENTITY_LABELS, VECTORS, load

SIZE = bart().get_vocab_size()
ROWS = {"vocab_size": SIZE, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
SMALL_BART = {
    "d_model": 16,
    "encoder_layers": 3,
    "decoder_layers": 1,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}
SMALL_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2, "decoder_start_token_id": 1}
# Models by the names of their configs, and how many tokens they read.
FAMILIES: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "distilbert": ("DistilBert", {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32}, 32),
    "albert": ("Albert", {**SHAPE, "embedding_size": 8}, 32),
    "electra": ("Electra", {**SHAPE, "embedding_size": 8}, 32),
    "deberta": ("DebertaV2", {**SHAPE, "relative_attention": True, "pos_att_type": ["p2c"]}, 32),
    "longformer": ("Longformer", {**SHAPE, "attention_window": [4, 4, 8]}, 30),
    "bart": ("Bart", SMALL_BART, 32),
    "t5": ("T5", SMALL_T5, None),
}


def saved(folder: Path, name: str, settings: dict[str, Any]) -> Any:
    # T5 has no end of positions.
    positions = {} if name == "T5" else {"max_position_embeddings": 32}
    config = getattr(transformers, f"{name}Config")(**{**ROWS, **positions, **settings})
    model = randomized(getattr(transformers, f"{name}Model")(config))
    model.save_pretrained(folder)
    save_byte_level(folder, bart())
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_layers_of_any_encoder_give_the_vectors_of_that_layer(tmp_path: Path, family: str) -> None:
    name, settings, length = FAMILIES[family]
    model = saved(tmp_path / "model", name, settings)
    found = embedder(str(tmp_path / "model"), 2, "cpu")
    assert (found.layer, found.length) == (2, length)
    tokens, vectors = found.embed(TEXTS)[0]
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        states = encoder(torch.from_numpy(tokens.ids)[None], output_hidden_states=True).hidden_states
    expected = states[2][0]
    if family == "t5":
        # Its last norm follows whatever layer is the last.
        expected = encoder.final_layer_norm(expected)
    np.testing.assert_allclose(vectors.numpy(), expected.detach().numpy(), atol=1e-4)


def test_longer_batches_are_split_and_come_back_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = embedder(str(save_bert(tmp_path / "model")), None, "cpu")
    alone = [found.embed([text])[0].vectors for text in [*TEXTS, ""]]
    monkeypatch.setattr("pyramidions.scoring.encoders.loading.TOKENS", 30)
    for one, among in zip(alone, found.embed([*TEXTS, ""]), strict=True):
        np.testing.assert_allclose(one.numpy(), among.vectors.numpy(), atol=1e-5)


def test_one_embedder_serves_all_metrics(tmp_path: Path) -> None:
    folder = str(save_bert(tmp_path / "model"))
    assert embedder(folder, 2, "cpu") is embedder(folder, 2, "cpu")


def test_half_precision_weights_are_computed_with_in_single_precision(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    transformers.AutoModel.from_pretrained(folder, dtype=torch.float16).save_pretrained(folder)
    assert embedder(str(folder), None, "cpu").embed(TEXTS)[0].vectors.dtype == torch.float32


def refusal(place: str | Path | None, head: Any = VECTORS, device: str = "cpu") -> str:
    with pytest.raises(UserError) as refused:
        load(None if place is None else str(place), head, device)
    return str(refused.value)


def test_a_model_that_is_not_given_is_asked_for() -> None:
    assert refusal(None, ANSWERS) == (
        "`qa_model` must be given: the folder or the name on the hub of an extractive question-answering model."
    )


def test_a_place_where_nothing_is(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    assert refusal(nothing) == f"`embedding_model` must be a folder or a name on the hub, but {nothing} does not exist."
    nothing.touch()
    assert refusal(nothing) == f"`embedding_model` must be a folder or a name on the hub, but {nothing} is a file."


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    start = "`embedding_model` must be a model"
    assert refusal(tmp_path) == f"{start}, but {tmp_path} has no config.json."
    config = tmp_path / "config.json"
    config.write_text("{")
    assert refusal(tmp_path).startswith(f"{start}, but the config.json of {tmp_path} cannot be read: it is not JSON (")
    config.write_text('{"task": 1}')
    assert refusal(tmp_path) == f"{start}, but the config.json of {tmp_path} names no model_type."
    config.write_text('{"model_type": "bert"}')
    assert refusal(tmp_path) == f"{start} with weights in model.safetensors, but {tmp_path} has none."


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert refusal(folder) == (
        f"`embedding_model` must be a model with weights in model.safetensors, but {folder} has none; "
        "its pickled weights are not read, since they may run code."
    )


def test_damaged_weights(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert refusal(folder).startswith(f"`embedding_model` must be a model with whole weights, but {folder}: ")


def test_a_model_that_brings_its_own_code_is_refused(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text("raise SystemExit('it ran')")
    assert refusal(folder) == (
        f"`embedding_model` must be a model that transformers knows, but {folder} is a mine and brings code of its "
        "own, which is never run."
    )


def test_a_kind_that_the_library_does_not_know(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    (folder / "config.json").write_text('{"model_type": "mine"}')
    assert refusal(folder) == f"`embedding_model` must be a model that transformers knows, but {folder} is a mine."


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    assert refusal(folder) == (
        f"`embedding_model` must be a model with a tokenizer, but {folder} has none (tokenizer.json, vocab.txt, ...)."
    )


def test_a_tokenizer_with_more_pieces_than_the_model_has_vectors(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    save_byte_level(folder, bart())
    assert refusal(folder) == (
        f"`embedding_model` must have one vector a piece, but the tokenizer of {folder} has {SIZE} pieces and its "
        f"weights have {wordpiece().get_vocab_size()} vectors."
    )


def test_a_model_that_reads_from_left_to_right_is_no_encoder(tmp_path: Path) -> None:
    saved(tmp_path, "GPT2", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32})
    assert refusal(tmp_path) == (
        "`embedding_model` must be an encoder, such as BERT or the encoder of BART, "
        f"but {tmp_path} is a gpt2, whose tokens do not see those to the right."
    )
    folder = save_bert(tmp_path / "decoder", is_decoder=True)
    assert refusal(folder).endswith(f"but {folder} is a bert, whose tokens do not see those to the right.")


@pytest.mark.parametrize("head", [ANSWERS, ENTITY_LABELS])
def test_an_encoder_without_the_head_is_refused(tmp_path: Path, head: Any) -> None:
    folder = save_bert(tmp_path / "model", "BertForMaskedLM")
    assert refusal(folder, head) == (
        f"`{head.option}` must be {head.meaning} (...{head.suffixes[0]}), but {folder} is a BertForMaskedLM."
    )


def test_a_head_without_weights_is_refused(tmp_path: Path) -> None:
    folder = save_roberta(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["RobertaForQuestionAnswering"]}))
    assert refusal(folder, ANSWERS) == (
        f"`qa_model` must be a model with whole weights, but {folder} lacks qa_outputs.bias."
    )


def test_a_device_that_is_not_here(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "model")
    assert refusal(folder, device="tpu").startswith("`device` must be one that torch finds here (cpu")


def test_without_the_library_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    said = refusal(tmp_path)
    assert said.startswith("`embedding_model` needs the library transformers, which is not installed: `pip install '")
    assert "'transformers<" in said
