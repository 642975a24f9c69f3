"""Each family of transformers: read, a model computes what it did; written, transformers computes what ours does."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from small_pretrained import FAMILIES, given_to, model_of, save, started, token_ids, transformers
from small_tokenizers import SENTENCES, bart_bytes, byte_fallback, pegasus

from pyramidions.inference import Summarizer
from pyramidions.inference.search import decoding_settings
from pyramidions.models import build, preset
from pyramidions.pretrained.exporting import export_model, export_of
from pyramidions.pretrained.families import FAMILIES as KNOWN
from pyramidions.pretrained.importing import import_model, write_checkpoint
from pyramidions.pretrained.names import SHARED, renamed
from pyramidions.pretrained.places import KNOWN_FAMILIES
from pyramidions.pretrained.saved_model import SavedModel, load_model
from pyramidions.text.tokenizer import PAD, Tokenizer

CARD = "# A model\n"
# No config of transformers says what BigBird's attention draws at random.
WRITTEN = [family for family in FAMILIES if family != "bigbird_pegasus"]
# Of rows that no position has, and of sinusoids, which each side computes by itself.
POSITIONS = {f"model.{coder}.embed_positions.weight" for coder in ("encoder", "decoder")}
Saved = dict[str, tuple[Any, Path]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Models of transformers, and the folders that hold them."""
    models = {family: model_of(family) for family in FAMILIES}
    return {family: (model, save(model, tmp_path_factory.mktemp(family))) for family, model in models.items()}


@pytest.fixture
def bart(saved: Saved, tmp_path: Path) -> Path:
    """A folder of a BART that a test may change."""
    return save(saved["bart"][0], tmp_path / "bart")


@torch.no_grad()
def assert_same_logits(theirs: Any, ours: SavedModel, *lengths: int, marked: bool = True) -> None:
    source, target = token_ids(ours.tokenizer, *lengths), token_ids(ours.tokenizer, *[9] * len(lengths))
    begun = started(ours.tokenizer, target, theirs.config.decoder_start_token_id)
    expected = theirs(**given_to(theirs, source, marked), decoder_input_ids=begun).logits
    found = ours.transformer(source, started(ours.tokenizer, target))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def assert_same_weights(found: SavedModel, expected: SavedModel) -> None:
    weights = expected.transformer.state_dict()
    assert all(value.equal(weights[name]) for name, value in found.transformer.state_dict().items())


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


# -------------------------------------------------------- what each family keeps


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_theirs_and_all_weights_are_taken(family: str, saved: Saved) -> None:
    theirs, folder = saved[family]
    ours = import_model(folder)
    assert not (ours.transfer.new or ours.transfer.dropped or ours.transfer.extended or ours.spread)
    assert len(ours.transfer.taken) == len(ours.model.transformer.state_dict())
    for lengths in ((1,), (40, 17, 2)):
        assert_same_logits(theirs, ours.model, *lengths)
    # Poolings that a text is too short for change nothing.
    pooling = import_model(folder, changes={"pooling_lengths": "16,8"}).model
    assert_same_logits(theirs, pooling, 8, 5)


@pytest.mark.parametrize("family", WRITTEN)
def test_an_export_has_the_same_bits_and_a_trained_one_the_same_ids_and_logits(
    family: str, saved: Saved, tmp_path: Path
) -> None:
    folder, ours = saved[family][1], import_model(saved[family][1]).model
    export_model(ours, tmp_path / "out", CARD)
    before, after = (load_file(each / "model.safetensors") for each in (folder, tmp_path / "out"))
    assert before.keys() == after.keys()
    different = {name for name, value in before.items() if not value.equal(after[name])}
    assert different == (POSITIONS if family in ("bart", "mbart", "pegasus") else set())
    for name in different:
        learned = family != "pegasus"
        rows = slice(2 if learned else 0, None)
        torch.testing.assert_close(before[name][rows], after[name][rows], rtol=0, atol=0 if learned else 1e-5)
    again = import_model(tmp_path / "out").model
    assert again.config == ours.config and again.tokenizer.pieces() == ours.tokenizer.pieces()
    assert_same_weights(again, ours)
    theirs, tokenizer = exported(trained(ours), tmp_path / "out")
    for lengths in ((1,), (40, 17, 2)):
        assert_same_logits(theirs, ours, *lengths)
    for text in [*SENTENCES[:6], "😀"]:
        ids = ours.tokenizer.framed(ours.tokenizer.encode(text))
        assert tokenizer(text).input_ids == ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == ours.tokenizer.decode(ids)
    assert tokenizer.model_max_length == ours.max_source_positions
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (theirs.config.pad_token_id, theirs.config.eos_token_id)


@pytest.mark.parametrize("family", ["bart", "mbart", "pegasus"])
def test_the_config_of_an_export_says_what_theirs_does_and_what_ctranslate2_needs(
    family: str, saved: Saved, tmp_path: Path
) -> None:
    export_model(import_model(saved[family][1]).model, tmp_path / "out", CARD)
    folders = (tmp_path / "out", saved[family][1])
    said, theirs = (transformers.AutoConfig.from_pretrained(folder).to_dict() for folder in folders)
    own = {name: value for name, value in said.items() if not name.startswith(("pyramidions_", "_name"))}
    # Configs on the hub say these, too.
    needed = {"normalize_before": family != "bart", "normalize_embedding": family != "pegasus"}
    assert own == {**{name: value for name, value in theirs.items() if name != "_name_or_path"}, **needed}


@pytest.mark.parametrize("family", ["bart", "mbart", "t5", "mt5"])
def test_generate_writes_the_same_summaries_in_the_settings_that_travel(
    family: str, saved: Saved, tmp_path: Path
) -> None:
    ours = trained(import_model(saved[family][1]).model)
    # Theirs counts the start in n-grams, and this mT5 writes it.
    ngram = 0 if family == "mt5" else 2
    settings = {"decoding_beam": 1, "decoding_min_length": 5, "decoding_max_length": 20}
    ours = replace(ours, config=replace(ours.config, **settings, decoding_no_repeat_ngram=ngram))
    theirs, _ = exported(ours, tmp_path / "out")
    source, pad = token_ids(ours.tokenizer, 33, 12, 7), ours.tokenizer.pad
    # Padding is never written by ours.
    found = theirs.generate(**given_to(theirs, source), suppress_tokens=[pad])
    search = decoding_settings(ours)
    expected = search.writer(search.for_length(2**20), [])(ours.transformer, source)
    for text, (best,) in zip(found.tolist(), expected, strict=True):
        mine = best.tokens.tolist()
        assert text[1 : len(mine) + 1] == mine


def test_a_refusal_names_the_families_that_can_be_imported() -> None:
    # fairseq alone has published BART-LS.
    assert set(KNOWN) == {"bart_ls", *KNOWN_FAMILIES} and set(KNOWN_FAMILIES) == set(FAMILIES)


# ------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        *((family, "scale_embedding") for family in FAMILIES[:6]),
        ("bigbird_pegasus", {"use_bias": True}),
        ("bigbird_pegasus", {"attention_type": "original_full"}),
    ],
)
def test_logits_are_theirs_with_other_settings(family: str, changes: Any, saved: Saved, tmp_path: Path) -> None:
    if changes == "scale_embedding":  # not as by default, whether the class of the family does so or not
        changes = {"scale_embedding": not getattr(saved[family][0].config, "scale_embedding", False)}
    theirs = model_of(family, **changes)
    lengths = (40,) if family == "bigbird_pegasus" else (17, 2)
    assert_same_logits(theirs, import_model(save(theirs, tmp_path)).model, *lengths)


def test_a_long_document_of_a_bigbird_is_read_in_blocks_or_whole(saved: Saved) -> None:
    theirs, folder = model_of("bigbird_pegasus"), saved["bigbird_pegasus"][1]
    theirs.get_encoder().set_attention_type("original_full")
    ours, whole = import_model(folder).model, import_model(folder, changes={"self_attention": "full"}).model
    for length, same in ((44, True), (45, False)):
        source = token_ids(ours.tokenizer, length)
        with torch.no_grad():
            expected = theirs.get_encoder()(**given_to(theirs, source)).last_hidden_state
            in_blocks, at_once = (x.transformer.encoder(source, source.eq(0)).sequence.x for x in (ours, whole))
        torch.testing.assert_close(at_once, expected, rtol=0, atol=1e-5)
        assert in_blocks.allclose(expected, rtol=0, atol=1e-5) == same


@pytest.mark.parametrize("family", ["bart", "pegasus", "mt5"])
@torch.no_grad()
def test_an_output_that_copies_starts_as_the_pretrained_one(family: str, saved: Saved) -> None:
    folder = saved[family][1]
    plain, pointing = import_model(folder), import_model(folder, changes={"output": "pointer(start=12)"})
    source, written = (token_ids(plain.model.tokenizer, *lengths) for lengths in ((33, 12, 7), (9, 9, 9)))
    expected = plain.model.transformer(source, written).softmax(-1)
    torch.testing.assert_close(pointing.model.transformer(source, written).exp(), expected, rtol=0, atol=1e-5)
    assert {name.rsplit(".", 1)[0] for name in pointing.transfer.new} == {
        f"decoder.output.pointer.{part}" for part in ("query", "key", "value", "gate", "token_query", "token_key")
    }


def test_positions_are_copied_to_a_longer_table_of_which_blocks_read_each_chunk_as_before(saved: Saved) -> None:
    changes = {"self_attention": "blockwise(block_size=40)"}
    found = import_model(saved["bart"][1], max_source_positions=100, changes=changes)
    own, longer = (m.transformer.encoder.embedder.positions.weight for m in (found.original, found.model))
    assert found.transfer.extended == {"encoder.embedder.positions.weight": (40, 100)}
    assert longer.equal(torch.cat([own, own, own[:20]]))
    source = token_ids(found.model.tokenizer, 90)
    with torch.no_grad():
        memory = found.model.transformer.encoder(source, source.eq(0)).sequence.x
        encoder = found.original.transformer.encoder
        chunks = [encoder(chunk, chunk.eq(PAD)).sequence.x for chunk in source.split(40, dim=1)]
    torch.testing.assert_close(memory, torch.cat(chunks, dim=1), rtol=0, atol=1e-5)
    # They do not shrink for shorter texts.
    shorter = import_model(saved["bart"][1], max_source_positions=20).model
    assert (len(shorter.transformer.encoder.embedder.positions.weight), shorter.max_source_positions) == (40, 20)


@pytest.mark.parametrize(
    ("family", "scorer", "spread"),
    [
        ("bart", "linear", True),
        ("pegasus", "linear", False),  # behind a sum
        ("pegasus", "linear(layer_norm=True)", True),  # behind a norm of its own
    ],
)
@torch.no_grad()
def test_scores_of_a_fresh_scorer_spread(family: str, scorer: str, spread: bool, saved: Saved) -> None:
    found = import_model(saved[family][1], changes={"pooling_lengths": "None,8", "scorer": scorer})
    assert found.spread == (["poolers.1.scorer.linear"] if spread else [])
    encoder, x = found.model.transformer.encoder, torch.randn(5000, 16)
    scored = encoder.layers[1].sublayers["feed_forward"].norm(x) if family == "bart" else 100 * x
    logits = encoder.poolers["1"].scorer.logits(scored)
    if spread:
        assert logits.var().item() == pytest.approx(2.0, rel=0.15)
        assert logits.mean().item() == pytest.approx(0, abs=0.15)


def test_second_projections_begin_as_the_first(saved: Saved) -> None:
    changes = {"self_attention": "sliding_window(window=8)", "global_tokens": 1, "global_projections": "dense"}
    found = import_model(saved["bart"][1], changes=changes)
    weights = found.model.transformer.state_dict()
    first = "encoder.layers.0.sublayers.self_attention.function.{}projections.q_proj.weight"
    assert weights[first.format("")].equal(weights[first.format("global_rows.")])
    assert first.format("global_rows.") in found.transfer.new


def test_how_the_model_writes_its_licence_and_what_is_not_applied_come_along(
    bart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"num_beams": 3, "length_penalty": 2.0, "min_length": 6, "max_length": 30, "no_repeat_ngram_size": 3}
    settings |= {"repetition_penalty": 3.5, "num_beam_groups": 1, "encoder_no_repeat_ngram_size": 4, "top_p": 0.9}
    settings |= {"forced_bos_token_id": 0, "bad_words_ids": [[7]], "suppress_tokens": [], "of_tomorrow": {"a": 1}}
    (bart / "generation_config.json").write_text(json.dumps(settings))
    (bart / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
    found = import_model(bart)
    decoding = decoding_settings(found.model)
    assert decoding[:5] == (3, 5, 28, 2.0, 3) and decoding.prefix == (0,)
    assert found.origin.licence == "apache-2.0"
    # Any name is a setting, unless it changes nothing: top_p without sampling.
    expected = {"repetition_penalty": 3.5, "encoder_no_repeat_ngram_size": 4, "bad_words_ids": [[7]]}
    assert found.not_applied == {**expected, "of_tomorrow": {"a": 1}}
    Summarizer.from_pretrained(bart, "cpu")
    told = capsys.readouterr().err
    assert all(name in told for name in found.not_applied) and "num_beam_groups" not in told and "top_p" not in told
    # Lengths without the first input of the decoder come first.
    (bart / "generation_config.json").write_text(json.dumps({**settings, "max_new_tokens": 9, "min_new_tokens": 4}))
    (bart / "README.md").write_text("# A model\n\nlicense: mit\n")
    found = import_model(bart)
    assert decoding_settings(found.model)[1:3] == (4, 8) and found.origin.licence is None


@pytest.mark.parametrize("several", [False, True])
def test_bin_files_hold_the_same(several: bool, bart: Path) -> None:
    expected, weights = import_model(bart).model, load_file(bart / "model.safetensors")
    (bart / "model.safetensors").unlink()
    names = {name: f"pytorch_model-{number % 2}.bin" for number, name in enumerate(weights)}
    if several:
        (bart / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": names}))
    for file in set(names.values()) if several else ["pytorch_model.bin"]:
        held = {name: value for name, value in weights.items() if not several or names[name] == file}
        torch.save(held, bart / file)
    assert_same_weights(import_model(bart).model, expected)


def test_two_files_of_weights_must_agree_and_one_may_be_narrower(bart: Path) -> None:
    weights = load_file(bart / "model.safetensors")
    torch.save({name: value.half() for name, value in weights.items()}, bart / "pytorch_model.bin")
    import_model(bart)
    torch.save({**weights, Q: weights[Q] + 1}, bart / "pytorch_model.bin")
    with refused(f"{Q} differs: remove one"):
        import_model(bart)


@pytest.mark.parametrize(("family", "dtype"), [("bart", torch.float16), ("pegasus", torch.bfloat16)])
def test_a_model_that_was_saved_in_half_precision_is_imported(family: str, dtype: torch.dtype, tmp_path: Path) -> None:
    found = import_model(save(model_of(family).to(dtype), tmp_path))
    assert {weight.dtype for weight in found.model.transformer.parameters()} == {torch.float32}


def test_a_t5_reads_its_prefix_before_each_document_and_writes_as_it_says(tmp_path: Path) -> None:
    theirs = model_of("t5")
    folder = save(theirs, tmp_path / "t5")
    said = {"prefix": "summarize: ", "num_beams": 1, "max_length": 12, "min_length": 3, "no_repeat_ngram_size": 2}
    with_config(task_specific_params={"summarization": said})(folder)
    summarizer = Summarizer.from_pretrained(folder, "cpu")
    text = "Bees fly fast."
    (found,) = summarizer.summarize([text])
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    given = torch.tensor([[*pieces.encode(f"summarize: {text}"), 1]])
    with torch.no_grad():
        expected = theirs.generate(given, num_beams=1, max_length=12, min_length=3, no_repeat_ngram_size=2)
    written = [i for i in expected[0].tolist() if 2 < i < 80]
    assert found.text == " ".join(pieces.decode(written).split())
    # A checkpoint and an export of it know as much.
    model = import_model(folder).model
    write_checkpoint(tmp_path / "t5.pt", model)
    assert Summarizer.from_pretrained(tmp_path / "t5.pt", "cpu").summarize([text])[0].text == found.text
    export_model(model, tmp_path / "out", CARD)
    assert import_model(tmp_path / "out").model.source_prefix == "summarize: "


def test_generation_config_wins_where_it_speaks_and_config_json_says_the_rest_of_a_task(tmp_path: Path) -> None:
    folder = save(model_of("t5"), tmp_path / "t5")
    said = {"prefix": "summarize: ", "num_beams": 4, "max_length": 30, "min_length": 9, "length_penalty": 2.0}
    with_config(task_specific_params={"summarization": said}, num_beams=7, no_repeat_ngram_size=5)(folder)
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": 1, "max_length": 12}))
    found = import_model(folder)
    # What config.json says outside of its tasks counts where there is no other file.
    assert decoding_settings(found.model)[:5] == (1, 8, 10, 2.0, 0) and found.model.source_prefix == "summarize: "


@pytest.mark.parametrize("family", WRITTEN)
def test_what_a_model_does_not_force_is_not_forced_by_its_export(family: str, saved: Saved, tmp_path: Path) -> None:
    folder = save(saved[family][0], tmp_path / "model")
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": 4, "max_length": 12}))
    model = import_model(folder).model
    exported(model, out := tmp_path / "out")
    said = json.loads((out / "generation_config.json").read_text())
    assert said["early_stopping"] is False and not [name for name in said if name.startswith("forced")]
    assert import_model(out).model.config == model.config


def test_any_family_reads_its_prefix(saved: Saved, tmp_path: Path) -> None:
    for family in FAMILIES:
        folder = save(saved[family][0], tmp_path / family)
        with_config(prefix="sum: ")(folder)
        assert import_model(folder).model.source_prefix == "sum: "


def test_a_table_of_the_released_t5_that_nothing_reads_is_left_out(saved: Saved, tmp_path: Path) -> None:
    unread = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    for family in ("t5", "mt5"):
        folder = save(saved[family][0], tmp_path / family)
        weights = load_file(folder / "model.safetensors")
        # The released files name the embedding otherwise, too.
        weights = {"encoder.embed_tokens.weight": weights.pop("shared.weight"), unread: torch.zeros(8, 3), **weights}
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        found = import_model(folder)
        # An output of its own stays whatever the embedding is called.
        assert not found.transfer.dropped and found.model.config.output == ("untied" if family == "mt5" else "tied")


def test_a_tokenizer_may_say_that_a_t5_reads_longer_texts(tmp_path: Path) -> None:
    folder = save(model_of("longt5"), tmp_path)
    for said, length in ((4096, 4096), (10**30, 512), (100, 512)):
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": said}))
        assert import_model(folder).model.max_source_positions == length


@pytest.mark.parametrize("family", ["t5", "longt5", "pegasus_x", "pegasus"])
def test_a_model_of_an_own_vocabulary_needs_no_beginning_and_no_spare_row(family: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(byte_fallback())
    tokenizer = Tokenizer.from_bytes(byte_fallback())
    theirs = model_of(family, vocab_size=tokenizer.vocab_size)
    theirs.save_pretrained(tmp_path)
    found = import_model(tmp_path).model
    assert_same_logits(theirs, found, 40, 17, 2)
    assert found.tokenizer == tokenizer and found.config.decoder_start == "<pad>"
    # What it starts from learns.
    tokens = torch.tensor([[9, 8, 1]])
    found.transformer.train()(tokens, tokens).sum().backward()
    assert found.transformer.decoder.embedder.tokens.weight.grad[0].any()


Change = Callable[[Path], object]


def with_config(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return change


def with_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Change:
    def changed(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return changed


def instead(name: str, content: Any) -> Change:
    """Replace the weights by a file of another name: pickled, or the index of several."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        if name.endswith(".json"):
            (folder / name).write_text(json.dumps({"weight_map": content}))
        else:
            torch.save(content, folder / name)

    return change


def as_pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def with_text(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text(text)


BLOCKS = {"self_attention": "blockwise(block_size=8)"}
Q = "model.encoder.layers.0.self_attn.q_proj.weight"
OURS = "encoder.layers.0.sublayers.self_attention.function.projections.q_proj.weight"
PICKLED, INDEX = "pytorch_model.bin", "model.safetensors.index.json"
NESTED = {Q: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])}


@pytest.mark.parametrize(
    ("break_it", "named"),
    [
        (with_config(model_type="marian"), "'marian'"),
        (with_config(d_model=None), "`d_model`"),
        (with_config(d_model="wide"), "'wide'"),
        (with_config(encoder_ffn_dim=9), "are 9 and 32"),
        (with_config(activation_function="mish"), "'mish'"),
        (with_config(tie_word_embeddings=False), "`tie_word_embeddings`"),
        (with_config(vocab_size=2000), "340, but have 2,000"),
        (with_text("generation_config.json", '{"decoder_start_token_id": 99999}'), "99999"),
        (as_pipe, "config.json cannot be read"),
        (with_text("config.json", "{"), "config.json is damaged"),
        (with_text("config.json", "[]"), "a list"),
        (lambda folder: (folder / "model.safetensors").unlink(), "lacks weights"),
        (with_text("model.safetensors", "half"), "model.safetensors is damaged"),
        (with_weights(lambda w: w.pop(Q)), f"{OURS} is missing"),
        (with_weights(lambda w: w.update({Q: w[Q].to(torch.float8_e4m3fn)})), f"{Q} is of 8 bits"),
        (with_weights(lambda w: w["final_logits_bias"].fill_(1)), "`final_logits_bias`"),
        (with_weights(lambda w: w.update({"lm_head.weight": 2 * w["model.shared.weight"]})), "lm_head.weight"),
        (instead(PICKLED, NESTED), f"{Q} is sparse, nested"),
        (instead(INDEX, {"a": ["model.safetensors"]}), "names a list"),
        (instead(INDEX, {"a": "../other.safetensors"}), "names '../other.safetensors'"),
    ],
    ids=lambda part: part[:32] if isinstance(part, str) else "",
)
def test_what_cannot_be_imported_is_named(break_it: Change, named: str, bart: Path) -> None:
    break_it(bart)
    with refused(named):
        import_model(bart)


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("bart", {"changes": {"output": "pointer(tied=False)"}}, "`output`"),
        ("bart", {"changes": {**BLOCKS, "pooling": "funnel", "pooling_lengths": "8,None"}}, "funnel"),
        ("t5", {"changes": BLOCKS}, "`self_attention`"),
        ("bart", {"max_source_positions": 0}, "max_source_positions"),
        ("bart", {"max_target_positions": 0}, "max_target_positions"),
    ],
)
def test_a_change_that_would_forget_what_was_learned_is_refused(
    family: str, changes: dict[str, Any], named: str, saved: Saved
) -> None:
    with refused(named):
        import_model(saved[family][1], **changes)


def test_weights_that_are_no_model_are_refused(saved: Saved, tmp_path: Path) -> None:
    with refused(SHARED[0]):
        renamed({Q: torch.ones(2)})
    folder = save(saved["pegasus"][0], tmp_path)
    with_weights(lambda w: w.update({"model.encoder.embed_positions.weight": torch.ones(40, 16)}))(folder)
    with refused("sinusoids"):
        import_model(folder)


# ------------------------------------------------------------------------- writing


def test_longer_positions_on_one_side_lengthen_the_other_table(saved: Saved, tmp_path: Path) -> None:
    ours = import_model(saved["bart"][1], max_source_positions=100).model
    theirs, tokenizer = exported(ours, tmp_path / "out")
    assert theirs.config.max_position_embeddings == 100 and tokenizer.model_max_length == 100
    assert_same_logits(theirs, ours, 90, 40)


@pytest.mark.parametrize("projections", ["none", "dense"])
def test_a_bart_with_windows_becomes_a_led(projections: str, saved: Saved, tmp_path: Path) -> None:
    windows = "sliding_window(window=8) | sliding_window(window=4)"
    changes = {"self_attention": windows, "global_projections": projections, "global_tokens": 1}
    ours = trained(import_model(saved["bart"][1], max_source_positions=64, changes=changes).model)
    theirs, _ = exported(ours, tmp_path / "out")
    assert theirs.config.model_type == "led" and theirs.config.attention_window == [8, 4]
    assert_same_logits(theirs, ours, 40, 17)
    # Without global tokens, none is marked.
    ours = import_model(saved["led"][1], changes={"global_tokens": 0, "global_projections": "none"}).model
    assert_same_logits(exported(ours, tmp_path / "unmarked")[0], ours, 40, 17, marked=False)


SHAPE = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2}


def test_a_led_from_scratch_is_a_led_there(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_bytes(bart_bytes())
    config = preset("led", **SHAPE, max_source_positions=64)
    model = build(config, tokenizer.vocab_size, PAD, max_target_positions=32).eval()
    ours = trained(SavedModel(model, config, tokenizer, 64, 32))
    assert_same_logits(exported(ours, tmp_path / "out")[0], ours, 50, 9)


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
def test_a_setting_in_the_way_is_named(family: str, changes: dict[str, Any], named: str, saved: Saved) -> None:
    model = import_model(saved[family][1], changes=changes).model
    assert named in export_of(model).reason


def test_what_no_model_of_transformers_does_stays_in_our_format(saved: Saved) -> None:
    bart, prepared = import_model(saved["bart"][1]).model, Tokenizer.from_bytes(pegasus(80, 0, 3, 2, 1))
    config = preset("vanilla", **SHAPE)
    made = SavedModel(build(config, bart.tokenizer.vocab_size, PAD), config, bart.tokenizer, 64, 32)
    for model, word in (
        (replace(bart, queries=True), "queries"),
        (replace(bart, tokenizer=prepared), "must be a tokenizer.json"),
        (made, "encoder_positions"),
    ):
        assert word in export_of(model).reason


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
def test_options_may_be_left_out_or_spelt(family: str, changes: dict[str, Any], saved: Saved, tmp_path: Path) -> None:
    ours = import_model(saved[family][1], changes=changes).model
    assert_same_logits(exported(ours, tmp_path / family)[0], ours, 20, 9)


def test_an_older_export_is_replaced_and_what_transformers_saved_is_not(saved: Saved, tmp_path: Path) -> None:
    bart, config = export_of(import_model(saved["bart"][1]).model), tmp_path / "out" / "config.json"
    for _ in range(2):
        bart.write(tmp_path / "out", CARD)
    held = {path.name for path in (tmp_path / "out").iterdir()}
    assert held == {*bart.files, "model.safetensors", "config.json", "README.md"}
    # transformers keeps all fields of the config beside the weights of another model.
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    torch.nn.init.ones_(theirs.get_input_embeddings().weight)
    theirs.save_pretrained(tmp_path / "theirs")
    assert "pyramidions_version" in (tmp_path / "theirs" / "config.json").read_text()
    about = json.loads(config.read_text())
    config.write_text(json.dumps({name: value for name, value in about.items() if name != "pyramidions_version"}))
    for foreign in (tmp_path / "theirs", tmp_path / "out"):
        before = (foreign / "model.safetensors").read_bytes()
        with refused("config.json"):
            bart.write(foreign, CARD)
        assert (foreign / "model.safetensors").read_bytes() == before


def test_damage_of_an_export_is_found_and_other_weights_of_transformers_are_not_damage(
    saved: Saved, tmp_path: Path
) -> None:
    folder, ours = tmp_path / "out", import_model(saved["bart"][1]).model
    theirs, tokenizer = exported(replace(ours, config=ours.config.replace(decoding_long="rewrite")), folder)
    read = load_model(folder)
    assert (read.config.decoding_long, read.origin) == ("rewrite", ours.origin)
    theirs.get_input_embeddings().weight.data[5] += 1
    for saving in (theirs, tokenizer):
        saving.save_pretrained(tmp_path / "trained")
    assert load_model(tmp_path / "trained").config == read.config
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with refused("model.safetensors is damaged"):
        load_model(folder)
