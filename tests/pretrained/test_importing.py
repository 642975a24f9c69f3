"""Imported models compute what they did; with another architecture, what they did where both agree."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from small_pretrained import PIECES, given_to, model_of, save, started, token_ids
from small_tokenizers import byte_fallback

from pyramidions.inference import Summarizer
from pyramidions.inference.search import decoding_settings
from pyramidions.pretrained.families import FAMILIES as KNOWN
from pyramidions.pretrained.importing import import_model, write_checkpoint
from pyramidions.pretrained.names import SHARED, renamed
from pyramidions.pretrained.places import KNOWN_FAMILIES
from pyramidions.text.tokenizer import EOS, PAD, Tokenizer

FAMILIES = ["bart", "led", "pegasus", "bigbird_pegasus", "pegasus_x", "mbart", "t5", "mt5", "longt5"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Path]]:
    models = {family: model_of(family) for family in FAMILIES}
    return {family: (model, save(model, tmp_path_factory.mktemp(family))) for family, model in models.items()}


def check_logits(theirs: Any, folder: Path, lengths: tuple[int, ...]) -> None:
    ours = import_model(folder)
    assert not (ours.transfer.new or ours.transfer.dropped or ours.transfer.extended or ours.spread)
    assert len(ours.transfer.taken) == len(ours.model.transformer.state_dict())
    tokenizer = ours.model.tokenizer
    source, target = token_ids(tokenizer, *lengths), token_ids(tokenizer, *[9] * len(lengths))
    begun = started(tokenizer, target, theirs.config.decoder_start_token_id)
    with torch.no_grad():
        expected = theirs(**given_to(theirs, source), decoder_input_ids=begun).logits
        found = ours.model.transformer(source, started(tokenizer, target))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_theirs(saved: dict[str, tuple[Any, Path]], family: str) -> None:
    for lengths in ((1,), (40, 17, 2)):
        check_logits(*saved[family], lengths)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        *((family, "scale_embedding") for family in FAMILIES[:6]),
        ("bigbird_pegasus", {"use_bias": True}),
        ("bigbird_pegasus", {"attention_type": "original_full"}),
    ],
)
def test_logits_are_theirs_with_other_settings(
    saved: dict[str, tuple[Any, Path]], family: str, changes: Any, tmp_path: Path
) -> None:
    if changes == "scale_embedding":  # not as by default, whether the class of the family does so or not
        changes = {"scale_embedding": not getattr(saved[family][0].config, "scale_embedding", False)}
    theirs = model_of(family, **changes)
    check_logits(theirs, save(theirs, tmp_path), (40,) if family == "bigbird_pegasus" else (17, 2))


def test_a_long_document_of_a_bigbird_is_read_in_blocks_or_whole(tmp_path: Path) -> None:
    theirs = model_of("bigbird_pegasus")
    theirs.get_encoder().set_attention_type("original_full")
    folder = save(model_of("bigbird_pegasus"), tmp_path)
    for length, same in ((44, True), (45, False)):
        ours = import_model(folder)
        source = token_ids(ours.model.tokenizer, length)
        whole = import_model(folder, changes={"self_attention": "full"})
        with torch.no_grad():
            expected = theirs.get_encoder()(**given_to(theirs, source)).last_hidden_state
            in_blocks, at_once = (x.model.transformer.encoder(source, source.eq(0)).sequence.x for x in (ours, whole))
        torch.testing.assert_close(at_once, expected, rtol=0, atol=1e-5)
        assert in_blocks.allclose(expected, rtol=0, atol=1e-5) == same


@pytest.mark.parametrize("family", ["bart", "pegasus", "mt5"])
@torch.no_grad()
def test_an_output_that_copies_starts_as_the_pretrained_one(saved: dict[str, tuple[Any, Path]], family: str) -> None:
    folder = saved[family][1]
    plain, pointing = import_model(folder), import_model(folder, changes={"output": "pointer(start=12)"})
    source, written = (token_ids(plain.model.tokenizer, *lengths) for lengths in ((33, 12, 7), (9, 9, 9)))
    expected = plain.model.transformer(source, written).softmax(-1)
    torch.testing.assert_close(pointing.model.transformer(source, written).exp(), expected, rtol=0, atol=1e-5)
    assert {name.rsplit(".", 1)[0] for name in pointing.transfer.new} == {
        f"decoder.output.pointer.{part}" for part in ("query", "key", "value", "gate", "token_query", "token_key")
    }


def test_positions_are_copied_to_a_longer_table(saved: dict[str, tuple[Any, Path]]) -> None:
    found = import_model(saved["bart"][1], max_source_positions=100)
    own, longer = (m.transformer.encoder.embedder.positions.weight for m in (found.original, found.model))
    assert found.transfer.extended == {"encoder.embedder.positions.weight": (40, 100)}
    assert torch.equal(longer, torch.cat([own, own, own[:20]]))
    # They do not shrink for shorter texts.
    shorter = import_model(saved["bart"][1], max_source_positions=20).model
    assert shorter.transformer.encoder.embedder.positions.weight.shape == (40, 16)
    assert shorter.max_source_positions == 20


@pytest.mark.parametrize(
    ("family", "scorer", "spread"),
    [
        ("bart", "linear", True),
        ("pegasus", "linear", False),  # behind a sum
        ("pegasus", "linear(layer_norm=True)", True),  # behind a norm of its own
    ],
)
@torch.no_grad()
def test_scores_of_a_fresh_scorer_spread(
    saved: dict[str, tuple[Any, Path]], family: str, scorer: str, spread: bool
) -> None:
    found = import_model(saved[family][1], changes={"pooling_lengths": "None,8", "scorer": scorer})
    assert found.spread == (["poolers.1.scorer.linear"] if spread else [])
    encoder, x = found.model.transformer.encoder, torch.randn(5000, 16)
    scored = encoder.layers[1].sublayers["feed_forward"].norm(x) if family == "bart" else 100 * x
    logits = encoder.poolers["1"].scorer.logits(scored)
    if spread:
        assert logits.var().item() == pytest.approx(2.0, rel=0.15)
        assert logits.mean().item() == pytest.approx(0, abs=0.15)


def test_blocks_of_as_many_positions_are_the_model_on_each_chunk(saved: dict[str, tuple[Any, Path]]) -> None:
    changes = {"self_attention": "blockwise(block_size=40)"}
    found = import_model(saved["bart"][1], max_source_positions=160, changes=changes)
    source = token_ids(found.model.tokenizer, 130)
    with torch.no_grad():
        memory = found.model.transformer.encoder(source, source.eq(0)).sequence.x
        encoder = found.original.transformer.encoder
        chunks = [encoder(chunk, chunk.eq(PAD)).sequence.x for chunk in source.split(40, dim=1)]
    torch.testing.assert_close(memory, torch.cat(chunks, dim=1), rtol=0, atol=1e-5)


def test_texts_that_are_not_pooled_are_read_as_before(saved: dict[str, tuple[Any, Path]]) -> None:
    for family in FAMILIES:
        found = import_model(saved[family][1], changes={"pooling_lengths": "16,8"})
        source, prefix = token_ids(found.model.tokenizer, 8, 5), torch.tensor([[EOS, 9, 7]] * 2)
        with torch.no_grad():
            before, after = (m.transformer(source, prefix) for m in (found.original, found.model))
        torch.testing.assert_close(after, before, rtol=0, atol=1e-6)


def test_second_projections_begin_as_the_first(saved: dict[str, tuple[Any, Path]]) -> None:
    changes = {"self_attention": "sliding_window(window=8)"}
    found = import_model(saved["bart"][1], changes={**changes, "global_tokens": 1, "global_projections": "dense"})
    weights = found.model.transformer.state_dict()
    first = "encoder.layers.0.sublayers.self_attention.function.{}projections.q_proj.weight"
    assert torch.equal(weights[first.format("")], weights[first.format("global_rows.")])
    assert first.format("global_rows.") in found.transfer.new


def test_how_the_model_writes_comes_along(saved: dict[str, tuple[Any, Path]], tmp_path: Path) -> None:
    folder = save(saved["bart"][0], tmp_path)
    settings = {"num_beams": 3, "length_penalty": 2.0, "min_length": 6, "max_length": 30, "no_repeat_ngram_size": 3}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    found = decoding_settings(import_model(folder).model)
    assert found[:5] == (3, 5, 28, 2.0, 3) and found.prefix == (0,)
    # Lengths without the first input of the decoder come first.
    new = {**settings, "max_new_tokens": 9, "min_new_tokens": 4}
    (folder / "generation_config.json").write_text(json.dumps(new))
    assert decoding_settings(import_model(folder).model)[1:3] == (4, 8)


def test_the_licence_is_that_of_the_card(saved: dict[str, tuple[Any, Path]], tmp_path: Path) -> None:
    folder = save(saved["bart"][0], tmp_path)
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
    assert import_model(folder).origin.licence == "apache-2.0"
    (folder / "README.md").write_text("# A model\n\nlicense: mit\n")
    assert import_model(folder).origin.licence is None


@pytest.mark.parametrize("several", [False, True])
def test_bin_files_hold_the_same(saved: dict[str, tuple[Any, Path]], tmp_path: Path, several: bool) -> None:
    folder = save(saved["bart"][0], tmp_path)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if several:
        names = {name: f"pytorch_model-{number % 2}.bin" for number, name in enumerate(weights)}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": names}))
        for file in set(names.values()):
            torch.save({name: value for name, value in weights.items() if names[name] == file}, folder / file)
    else:
        torch.save(weights, folder / "pytorch_model.bin")
    found, expected = (import_model(path).model.transformer.state_dict() for path in (folder, saved["bart"][1]))
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def with_config(**changes: Any) -> Any:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return change


def with_weights(change: Any) -> Any:
    def changed(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return changed


def pickled(weights: dict[str, Any]) -> Any:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save(weights, folder / "pytorch_model.bin")

    return change


def index_of(names: dict[str, Any]) -> Any:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))

    return change


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def cut(folder: Path, to: int) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:to])


BLOCKS = {"self_attention": "blockwise(block_size=8)"}
Q = "model.encoder.layers.0.self_attn.q_proj.weight"
OURS = "encoder.layers.0.sublayers.self_attention.function.projections.q_proj.weight"


def without(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def with_text(name: str, text: str) -> Any:
    return lambda folder: (folder / name).write_text(text)


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
        (lambda folder: as_pipe(folder / "config.json"), "config.json cannot be read: it must be a regular file"),
        (with_text("config.json", "{"), "config.json is damaged"),
        (with_text("config.json", "[]"), "a list"),
        (without("model.safetensors"), "lacks weights"),
        (lambda folder: cut(folder, 999), "model.safetensors is damaged"),
        (with_weights(lambda w: w.pop(Q)), f"{OURS} is missing"),
        (with_weights(lambda w: w.update(more=w[Q].clone())), "more has no place in the model"),
        (with_weights(lambda w: w.update({Q: torch.ones(3, 3)})), f"{OURS} must be (16, 16)"),
        (with_weights(lambda w: w[Q].fill_(torch.nan)), f"{Q} holds NaN"),
        (with_weights(lambda w: w.update({Q: w[Q].to(torch.float8_e4m3fn)})), f"{Q} is of 8 bits"),
        (with_weights(lambda w: w["final_logits_bias"].fill_(1)), "`final_logits_bias`"),
        (with_weights(lambda w: w.update({"lm_head.weight": 2 * w["model.shared.weight"]})), "lm_head.weight"),
        (pickled({Q: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])}), f"{Q} is sparse, nested"),
        (pickled({"a": Path}), "it is not loaded"),
        (index_of({"a": ["model.safetensors"]}), "names a list"),
        (index_of({"a": "../other.safetensors"}), "must name files beside it, but names '../other.safetensors'"),
    ],
    ids=lambda part: part[:32] if isinstance(part, str) else "",
)
def test_what_cannot_be_imported_is_named(
    saved: dict[str, tuple[Any, Path]], tmp_path: Path, break_it: Any, named: str
) -> None:
    folder = save(saved["bart"][0], tmp_path)
    break_it(folder)
    with refused(named):
        import_model(folder)


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("bart", {"output": "pointer(tied=False)"}, "`output`"),
        ("bart", {**BLOCKS, "pooling": "funnel", "pooling_lengths": "8,None"}, "funnel"),
        ("t5", BLOCKS, "`self_attention`"),
    ],
)
def test_a_change_that_would_forget_what_was_learned_is_refused(
    saved: dict[str, tuple[Any, Path]], family: str, changes: dict[str, Any], named: str
) -> None:
    with refused(named):
        import_model(saved[family][1], changes=changes)
    for length in ("max_source_positions", "max_target_positions"):
        with refused(length):
            import_model(saved[family][1], **{length: 0})


def test_weights_that_are_no_model_are_refused(saved: dict[str, tuple[Any, Path]], tmp_path: Path) -> None:
    with refused(SHARED[0]):
        renamed({Q: torch.ones(2)})
    folder = save(saved["pegasus"][0], tmp_path)
    with_weights(lambda w: w.update({"model.encoder.embed_positions.weight": torch.ones(40, 16)}))(folder)
    with refused("sinusoids"):
        import_model(folder)


@pytest.mark.parametrize(("family", "dtype"), [("bart", torch.float16), ("pegasus", torch.bfloat16)])
def test_a_model_that_was_saved_in_half_precision_is_imported(family: str, dtype: torch.dtype, tmp_path: Path) -> None:
    found = import_model(save(model_of(family).to(dtype), tmp_path))
    assert {weight.dtype for weight in found.model.transformer.parameters()} == {torch.float32}


def test_a_refusal_names_the_families_that_can_be_imported() -> None:
    # fairseq alone has published BART-LS.
    assert set(KNOWN) == {"bart_ls", *KNOWN_FAMILIES}


def test_a_t5_reads_its_prefix_before_each_document_and_writes_as_it_says(tmp_path: Path) -> None:
    theirs = model_of("t5")
    folder = save(theirs, tmp_path / "t5")
    about = json.loads((folder / "config.json").read_text())
    said = {"prefix": "summarize: ", "num_beams": 1, "max_length": 12, "min_length": 3, "no_repeat_ngram_size": 2}
    (folder / "config.json").write_text(json.dumps({**about, "task_specific_params": {"summarization": said}}))
    summarizer = Summarizer.from_pretrained(folder, "cpu")
    text = "Bees fly fast."
    (found,) = summarizer.summarize([text])
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    given = torch.tensor([[*pieces.encode(f"summarize: {text}"), 1]])
    with torch.no_grad():
        expected = theirs.generate(given, num_beams=1, max_length=12, min_length=3, no_repeat_ngram_size=2)
    written = [i for i in expected[0].tolist() if 2 < i < 80]
    assert found.text == " ".join(pieces.decode(written).split())
    # A checkpoint of it knows as much.
    write_checkpoint(tmp_path / "t5.pt", import_model(folder).model)
    assert Summarizer.from_pretrained(tmp_path / "t5.pt", "cpu").summarize([text])[0].text == found.text


def test_a_table_of_the_released_t5_that_nothing_reads_is_left_out(tmp_path: Path) -> None:
    folder = save(model_of("t5"), tmp_path / "t5")
    weights = load_file(folder / "model.safetensors")
    unread = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    # The released files name the embedding otherwise, too.
    weights = {"encoder.embed_tokens.weight": weights.pop("shared.weight"), unread: torch.zeros(8, 3), **weights}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert not import_model(folder).transfer.dropped
    # An output of its own stays whatever the embedding is called.
    folder = save(model_of("mt5"), tmp_path / "mt5")
    weights = load_file(folder / "model.safetensors")
    weights["encoder.embed_tokens.weight"] = weights.pop("shared.weight")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert import_model(folder).model.config.output == "untied"


def test_a_tokenizer_may_say_that_a_t5_reads_longer_texts(tmp_path: Path) -> None:
    folder = save(model_of("longt5"), tmp_path)
    for said, length in ((4096, 4096), (10**30, 512), (100, 512)):
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": said}))
        assert import_model(folder).model.max_source_positions == length


def test_settings_of_generation_that_are_not_applied_are_told(
    saved: dict[str, tuple[Any, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save(saved["bart"][0], tmp_path / "bart")
    said = {"repetition_penalty": 3.5, "num_beam_groups": 1, "encoder_no_repeat_ngram_size": 4}
    (folder / "generation_config.json").write_text(json.dumps(said))
    Summarizer.from_pretrained(folder, "cpu")
    assert import_model(folder).not_applied == {"repetition_penalty": 3.5, "encoder_no_repeat_ngram_size": 4}
    told = capsys.readouterr().err
    assert "repetition_penalty" in told and "encoder_no_repeat_ngram_size" in told and "num_beam_groups" not in told


def test_two_files_of_weights_must_agree_and_one_may_be_narrower(
    saved: dict[str, tuple[Any, Path]], tmp_path: Path
) -> None:
    folder = save(saved["bart"][0], tmp_path)
    weights = load_file(folder / "model.safetensors")
    torch.save({name: value.half() for name, value in weights.items()}, folder / "pytorch_model.bin")
    import_model(folder)
    torch.save({**weights, Q: weights[Q] + 1}, folder / "pytorch_model.bin")
    with refused(f"{Q} differs: remove one"):
        import_model(folder)


@pytest.mark.parametrize("family", ["t5", "longt5", "pegasus_x", "pegasus"])
def test_a_model_of_an_own_vocabulary_needs_no_beginning_and_no_spare_row(family: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(byte_fallback())
    tokenizer = Tokenizer.from_bytes(byte_fallback())
    theirs = model_of(family, vocab_size=tokenizer.vocab_size)
    theirs.save_pretrained(tmp_path)
    check_logits(theirs, tmp_path, (1,))
    check_logits(theirs, tmp_path, (40, 17, 2))
    found = import_model(tmp_path).model
    assert found.tokenizer == tokenizer and found.config.decoder_start == "<pad>"
    # What it starts from learns.
    tokens = torch.tensor([[9, 8, 1]])
    found.transformer.train()(tokens, tokens).sum().backward()
    assert found.transformer.decoder.embedder.tokens.weight.grad[0].any()


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_that_a_user_added_are_read_and_written(family: str, tmp_path: Path) -> None:
    theirs = model_of(family, vocab_size=PIECES[family] + 2)
    names = {f"[{name}]": PIECES[family] + place for place, name in enumerate(("SEC", "FIG"))}
    (save(theirs, tmp_path) / "added_tokens.json").write_text(json.dumps(names))
    if family in ("t5", "mt5", "longt5"):
        # Rows without a piece would come first.
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 104}))
    check_logits(theirs, tmp_path, (17, 2))
    tokenizer = import_model(tmp_path).model.tokenizer
    ids = tokenizer.encode("the [SEC] fox [FIG]")
    assert [i for i in ids if i >= PIECES[family]] == list(names.values())
    assert tokenizer.decode(ids).replace(" ", "") == "the[SEC]fox[FIG]"
