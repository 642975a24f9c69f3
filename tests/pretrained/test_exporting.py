"""Models in the format of transformers compute there what they compute here; others are refused in a sentence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refused
from safetensors.torch import load_file
from small_pretrained import given_to, model_of, save, started, token_ids, transformers
from small_tokenizers import SENTENCES, bart_bytes, pegasus

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch
from pyramidions.pretrained.exporting import export_model, export_of
from pyramidions.pretrained.importing import import_model
from pyramidions.pretrained.saved_model import SavedModel, load_model
from pyramidions.text.tokenizer import PAD, Tokenizer

CARD = "# A model\n"
FAMILIES = ["bart", "led", "pegasus", "pegasus_x", "mbart", "t5", "mt5", "longt5"]
# Of rows that no position has, and of sinusoids, which each side computes by itself.
POSITIONS = {f"model.{coder}.embed_positions.weight" for coder in ("encoder", "decoder")}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: save(model_of(family), tmp_path_factory.mktemp(family)) for family in FAMILIES}


def trained(model: SavedModel) -> SavedModel:
    """Return the model with other weights, as after training; the rows of embeddings stay apart."""
    torch.manual_seed(11)
    with torch.no_grad():
        for weight in model.transformer.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model


def exported(model: SavedModel, folder: Path) -> tuple[Any, Any]:
    """Return what transformers reads of an export: model and tokenizer."""
    export_model(model, folder, CARD)
    found, about = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not any(about.values())
    return found.eval(), transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def assert_same_logits(theirs: Any, ours: SavedModel, *lengths: int, marked: bool = True) -> None:
    source, target = token_ids(ours.tokenizer, *lengths), token_ids(ours.tokenizer, *[9] * len(lengths))
    begun = started(ours.tokenizer, target, theirs.config.decoder_start_token_id)
    found = theirs(**given_to(theirs, source, marked), decoder_input_ids=begun).logits
    expected = ours.transformer(source, started(ours.tokenizer, target))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_import_exported_has_the_same_bits_and_is_imported_again(
    sources: dict[str, Path], tmp_path: Path, family: str
) -> None:
    first = import_model(sources[family]).model
    export_model(first, tmp_path / "out", CARD)
    before, after = (load_file(folder / "model.safetensors") for folder in (sources[family], tmp_path / "out"))
    assert before.keys() == after.keys()
    different = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert different == (POSITIONS if family in ("bart", "mbart", "pegasus") else set())
    for name in different:
        learned = family != "pegasus"
        rows = slice(2 if learned else 0, None)
        torch.testing.assert_close(before[name][rows], after[name][rows], rtol=0, atol=0 if learned else 1e-5)
    second = import_model(tmp_path / "out").model
    assert second.config == first.config and second.tokenizer.pieces() == first.tokenizer.pieces()
    weights = second.transformer.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in first.transformer.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trained_model_reads_the_same_ids_there_and_computes_the_same(
    sources: dict[str, Path], tmp_path: Path, family: str
) -> None:
    ours = trained(import_model(sources[family]).model)
    theirs, tokenizer = exported(ours, tmp_path / "out")
    for lengths in ((1,), (40, 17, 2)):
        assert_same_logits(theirs, ours, *lengths)
    for text in [*SENTENCES[:6], "😀"]:
        ids = ours.tokenizer.framed(ours.tokenizer.encode(text))
        assert tokenizer(text).input_ids == ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == ours.tokenizer.decode(ids)
    assert tokenizer.model_max_length == ours.max_source_positions
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (theirs.config.pad_token_id, theirs.config.eos_token_id)


@pytest.mark.parametrize("family", ["bart", "mbart", "t5", "mt5"])
def test_generate_writes_the_same_summaries_in_the_settings_that_travel(
    sources: dict[str, Path], tmp_path: Path, family: str
) -> None:
    ours = trained(import_model(sources[family]).model)
    # Theirs counts the start in n-grams, and this mT5 writes it.
    settings = {"decoding_beam": 1, "decoding_min_length": 5, "decoding_max_length": 20}
    settings["decoding_no_repeat_ngram"] = 0 if family == "mt5" else 2
    ours = replace(ours, config=replace(ours.config, **settings))
    theirs, _ = exported(ours, tmp_path / "out")
    source, (pad, eos) = token_ids(ours.tokenizer, 33, 12, 7), (ours.tokenizer.pad, ours.tokenizer.eos)
    # Padding is never written by ours.
    found = theirs.generate(**given_to(theirs, source), suppress_tokens=[pad])
    ngram = settings["decoding_no_repeat_ngram"]
    expected = BeamSearch(1, 5, 20, 1.0, ngram, eos=eos, prefix=ours.tokenizer.prefix)(ours.transformer, source)
    for text, (best,) in zip(found.tolist(), expected, strict=True):
        mine = best.tokens.tolist()
        assert text[1 : len(mine) + 1] == mine


def test_longer_positions_on_one_side_lengthen_the_other_table(sources: dict[str, Path], tmp_path: Path) -> None:
    ours = import_model(sources["bart"], max_source_positions=100).model
    theirs, tokenizer = exported(ours, tmp_path / "out")
    assert theirs.config.max_position_embeddings == 100 and tokenizer.model_max_length == 100
    assert_same_logits(theirs, ours, 90, 40)


@pytest.mark.parametrize("projections", ["none", "dense"])
def test_a_bart_with_windows_becomes_a_led(sources: dict[str, Path], tmp_path: Path, projections: str) -> None:
    windows = "sliding_window(window=8) | sliding_window(window=4)"
    changes = {"self_attention": windows, "global_projections": projections}
    found = import_model(sources["bart"], max_source_positions=64, changes={**changes, "global_tokens": 1})
    theirs, _ = exported(trained(found.model), tmp_path / "out")
    assert theirs.config.model_type == "led" and theirs.config.attention_window == [8, 4]
    assert_same_logits(theirs, found.model, 40, 17)
    # Without global tokens, none is marked.
    ours = import_model(sources["led"], changes={"global_tokens": 0, "global_projections": "none"}).model
    assert_same_logits(exported(ours, tmp_path / "unmarked")[0], ours, 40, 17, marked=False)


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("bart", {"pooling_lengths": "None,8"}, "`pooling_lengths`"),
        ("led", {"self_attention": "full | sliding_window(window=4)"}, "`self_attention`"),
        ("led", {"self_attention": "sliding_window(window=4, dilation=2, dilated_heads=1)"}, "`dilation`"),
        ("led", {"no_scale_embedding": False}, "`no_scale_embedding`"),
        ("pegasus", {"stack": "reversible"}, "`stack`"),
        ("pegasus_x", {"global_tokens": 2}, "`global_tokens`"),
        ("longt5", {"decoder_self_attention": "full"}, "`decoder_self_attention`"),
        ("bart", {"output": "pointer"}, "`output` must be 'tied'"),
        ("pegasus", {"decoder_positions": "sinusoidal(first=2, frequencies='published')"}, "`decoder_positions`"),
    ],
)
def test_a_setting_in_the_way_is_named(
    sources: dict[str, Path], family: str, changes: dict[str, Any], named: str
) -> None:
    model = import_model(sources[family], changes=changes).model
    assert named in export_of(model).reason


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("pegasus_x", {"self_attention": "block_global(block_size=8, staggered=True) | block_global(block_size=8)"}),
        ("t5", {"feed_forward": "dense(bias=False)", "cross_projections": "dense(inner_dim=12, bias=False)"}),
        ("longt5", {"self_attention": "transient_global(window=6, block_size=4, furthest=16, buckets=8)"}),
        (
            "bart",
            {
                "self_attention": "full | full",
                "pooling_lengths": "None,None",
                "cross_attention": "full|full",
                "upsampling": "none",
                "stack": "recomputing",
                "feed_forward": " | ".join(["dense(activation='gelu', chunk_size=7)"] * 4),
            },
        ),
    ],
)
def test_options_may_be_left_out_or_spelt(
    sources: dict[str, Path], tmp_path: Path, family: str, changes: dict[str, Any]
) -> None:
    ours = import_model(sources[family], changes=changes).model
    assert_same_logits(exported(ours, tmp_path / family)[0], ours, 20, 9)


def test_the_prefix_of_a_t5_travels(sources: dict[str, Path], tmp_path: Path) -> None:
    t5 = replace(import_model(sources["t5"]).model, source_prefix="sum: ")
    export_model(t5, tmp_path / "out", CARD)
    assert import_model(tmp_path / "out").model.source_prefix == "sum: "


def test_what_no_model_of_transformers_does_stays_in_our_format(sources: dict[str, Path]) -> None:
    bart, prepared = import_model(sources["bart"]).model, Tokenizer.from_bytes(pegasus(80, 0, 3, 2, 1))
    config = preset("vanilla", **SHAPE)
    made = SavedModel(build(config, bart.tokenizer.vocab_size, PAD), config, bart.tokenizer, 64, 32)
    others = [
        (replace(bart, queries=True), "queries"),
        (replace(bart, source_prefix="sum: "), "'sum: '"),
        (replace(bart, tokenizer=prepared), "must be a tokenizer.json"),
        (made, "encoder_positions"),
    ]
    for model, word in others:
        assert word in export_of(model).reason


SHAPE = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2}


def test_a_led_from_scratch_is_a_led_there(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_bytes(bart_bytes())
    config = preset("led", **SHAPE, max_source_positions=64)
    model = build(config, tokenizer.vocab_size, PAD, max_target_positions=32).eval()
    ours = trained(SavedModel(model, config, tokenizer, 64, 32))
    assert_same_logits(exported(ours, tmp_path / "out")[0], ours, 50, 9)


def test_what_transformers_saved_goes_there_and_back(sources: dict[str, Path], tmp_path: Path) -> None:
    folder = save(model_of("pegasus"), tmp_path / "saved")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    (folder / "spiece.model").unlink()
    ours = import_model(folder).model
    theirs, tokenizer = exported(ours, tmp_path / "out")
    before = transformers.AutoTokenizer.from_pretrained(folder)
    assert all(tokenizer(text).input_ids == before(text).input_ids for text in SENTENCES[:6])
    assert_same_logits(theirs, ours, 9, 5)


def test_an_older_export_for_transformers_is_replaced_and_nothing_else(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    bart = export_of(import_model(sources["bart"]).model)
    for _ in range(2):
        bart.write(tmp_path / "out", CARD)
    held = {path.name for path in (tmp_path / "out").iterdir()}
    assert held == {*bart.files, "model.safetensors", "config.json", "README.md"}
    # transformers keeps all fields of the config beside the weights of another model.
    theirs, _ = exported(import_model(sources["bart"]).model, tmp_path / "out")
    torch.nn.init.ones_(theirs.get_input_embeddings().weight)
    theirs.save_pretrained(tmp_path / "theirs")
    assert "pyramidions_version" in (tmp_path / "theirs" / "config.json").read_text()
    before = (tmp_path / "theirs" / "model.safetensors").read_bytes()
    with refused("config.json"):
        bart.write(tmp_path / "theirs", CARD)
    assert (tmp_path / "theirs" / "model.safetensors").read_bytes() == before
    config = tmp_path / "out" / "config.json"
    about = json.loads(config.read_text())
    del about["pyramidions_version"]
    config.write_text(json.dumps(about))
    with refused("config.json"):
        bart.write(tmp_path / "out", CARD)


def test_damage_of_an_export_is_found_and_other_weights_of_transformers_are_not_damage(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    ours = import_model(sources["bart"]).model
    export_model(replace(ours, config=ours.config.replace(decoding_long="rewrite")), folder, CARD)
    read = load_model(folder)
    assert (read.config.decoding_long, read.origin) == ("rewrite", ours.origin)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    theirs.get_input_embeddings().weight.data[5] += 1
    theirs.save_pretrained(tmp_path / "trained")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "trained" / name).write_bytes((folder / name).read_bytes())
    assert load_model(tmp_path / "trained").config == read.config
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with refused("model.safetensors is damaged"):
        load_model(folder)
