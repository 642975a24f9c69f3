"""fairseq's own BART, as a folder or packed, computes here what it computes there."""

import errno
import io
import json
import random
import shutil
import tarfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import get_encoder
from fairseq.models.bart import BARTModel
from fairseq.models.bart.model import bart_base_architecture
from small_encoders import randomized
from small_tokenizers import SENTENCES, bart
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pyramidions.base.errors import UserError
from pyramidions.pretrained.importing import import_model
from pyramidions.text.tokenizer import EOS, PAD, SPECIALS

# What fairseq does that newer versions of torch deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")

SIZE = {
    **{f"{coder}_{name}": n for coder in ("encoder", "decoder") for name, n in (("layers", 2), ("attention_heads", 2))},
    **{f"{coder}_embed_dim": 16 for coder in ("encoder", "decoder")},
    **{f"{coder}_ffn_embed_dim": 32 for coder in ("encoder", "decoder")},
    **{f"max_{side}_positions": 40 for side in ("source", "target")},
}


def vocabulary(folder: Path) -> None:
    """Write a dictionary of GPT-2's ids in another order, and GPT-2's own files."""
    about = json.loads(bart().to_str())["model"]
    pieces = [piece for piece in about["vocab"] if piece not in (*SPECIALS, "<mask>")]
    (folder / "encoder.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (folder / "vocab.bpe").write_text("#version: 0.2\n" + "".join(f"{' '.join(pair)}\n" for pair in about["merges"]))
    ids = torch.randperm(len(pieces), generator=torch.Generator().manual_seed(5)).tolist()
    lines = [*(f"{i} {1000 - place}" for place, i in enumerate(ids)), "madeupword0000 0"]
    (folder / "dict.txt").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Dictionary, Path]:
    folder = tmp_path_factory.mktemp("archives") / "bart.tiny"
    folder.mkdir()
    vocabulary(folder)
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dictionary.add_symbol("<mask>")
    args = Namespace(**SIZE, arch="bart_base", task="denoising", no_scale_embedding=True)
    bart_base_architecture(args)
    model = BARTModel.build_model(args, SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary))
    state = {"args": args, "model": randomized(model).state_dict(), "optimizer_history": []}
    torch.save(state, folder / "model.pt")
    return model, dictionary, folder


@torch.no_grad()
def logits(theirs: Any, source: Tensor, prefix: Tensor) -> Tensor:
    found: Tensor = theirs(source, source.ne(PAD).sum(1), prefix)[0]
    return found


def test_logits_are_theirs(archive: tuple[Any, Dictionary, Path]) -> None:
    theirs, dictionary, folder = archive
    ours = import_model(folder)
    assert ours.origin == ("bart.tiny", "bart", None, None) and not ours.transfer.new
    assert ours.model.max_source_positions == 40 and ours.model.tokenizer.vocab_size == len(dictionary)
    generator = torch.Generator().manual_seed(3)
    texts = [torch.randint(4, len(dictionary), (length,), generator=generator) for length in (40, 17, 2)]
    source = pad_sequence(texts, batch_first=True, padding_value=PAD)
    prefix = torch.cat([torch.full((3, 1), EOS), source[:, :8].clamp_min(4)], dim=1)
    with torch.no_grad():
        found = ours.model.transformer(source, prefix)
    torch.testing.assert_close(found, logits(theirs, source, prefix), rtol=0, atol=1e-5)


def test_ids_are_theirs(archive: tuple[Any, Dictionary, Path]) -> None:
    _, dictionary, folder = archive
    tokenizer, theirs = import_model(folder).model.tokenizer, get_encoder(folder / "encoder.json", folder / "vocab.bpe")
    for text in SENTENCES[:6]:
        line = " ".join(["<s>", *map(str, theirs.encode(text))])
        expected = dictionary.encode_line(line, add_if_not_exist=False, append_eos=True).tolist()
        ids = tokenizer.framed(tokenizer.encode(text))
        assert ids == expected and tokenizer.decode(ids) == text


def test_a_packed_archive_holds_the_same(archive: tuple[Any, Dictionary, Path], tmp_path: Path) -> None:
    _, _, folder = archive
    with tarfile.open(tmp_path / "bart.tiny.tar.gz", "w:gz") as packed:
        packed.add(folder, "bart.tiny")
    found, expected = import_model(tmp_path / "bart.tiny.tar.gz"), import_model(folder)
    assert found.origin == expected.origin and found.model.config == expected.model.config
    weights = expected.model.transformer.state_dict()
    assert all(value.equal(weights[name]) for name, value in found.model.transformer.state_dict().items())


def changed(folder: Path, to: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Return a copy of an archive with another model.pt."""
    shutil.copytree(folder, to)
    with torch.serialization.safe_globals([Namespace]):
        state = torch.load(to / "model.pt", weights_only=True)
    change(state)
    torch.save(state, to / "model.pt")
    return to


def stack(state: dict[str, Any]) -> None:
    """Stack the projections of one attention, as older releases do."""
    head, weights = "encoder.layers.0.self_attn.", state["model"]
    for kind in ("weight", "bias"):
        parts = [weights.pop(f"{head}{part}_proj.{kind}") for part in "qkv"]
        weights[f"{head}in_proj_{kind}"] = torch.cat(parts)


def repeat(state: dict[str, Any]) -> None:
    weights = dict(state["model"])
    stack(state)
    state["model"] |= weights | {"encoder.version": torch.tensor([3.0])}


def as_config(state: dict[str, Any]) -> None:
    state["cfg"], state["args"] = {"model": vars(state["args"])}, None


@pytest.mark.parametrize("change", [stack, repeat, as_config])
def test_other_releases_hold_the_same(
    archive: tuple[Any, Dictionary, Path], tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    found = import_model(changed(archive[2], tmp_path / "other", change)).model.transformer.state_dict()
    weights = import_model(archive[2]).model.transformer.state_dict()
    assert all(value.equal(weights[name]) for name, value in found.items())


def differ(state: dict[str, Any]) -> None:
    repeat(state)
    state["model"]["encoder.layers.0.self_attn.k_proj.bias"] = torch.ones(16)


def setting(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda state: vars(state["args"]).update(values)


def weight(name: str, value: Tensor) -> Callable[[dict[str, Any]], Any]:
    return lambda state: state["model"].update({name: value})


STACKED = "encoder.layers.0.self_attn.in_proj_"


def as_bart_ls(state: dict[str, Any], **settings: Any) -> None:
    """Turn a BART into a BART-LS: 80 positions, blocks of 40, and a last layer that reads averages."""
    said = {"use_xformers": True, "attention_name": "block_noglobal", "xformer_config": '{"block_size": 40}'}
    vars(state["args"]).update({**said, "pooling_layers": 1, "max_source_positions": 80, "alibi": False, **settings})
    weights, generator = state["model"], torch.Generator().manual_seed(2)
    table = weights["encoder.embed_positions.weight"]
    weights["encoder.embed_positions.weight"] = torch.cat([table, table[2:]])
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        for kind, shape in (("weight", (16, 16)), ("bias", (16,))):
            drawn = 0.3 * torch.randn(shape, generator=generator)
            weights[f"encoder.layers.1.pool_attn.{part}.{kind}"] = drawn
    weights["generator.sentence_encoder.embed_tokens.weight"] = torch.ones(2, 16)


def read_averages(x: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """Return what a text (L, 1, D) reads of its averages, as the released layer computes it."""

    def projected(y: Tensor, part: str) -> Tensor:
        head = f"encoder.layers.1.pool_attn.{part}_proj"
        return F.linear(y, weights[f"{head}.weight"], weights[f"{head}.bias"])

    q, k, v = (projected(x, part) for part in "qkv")
    pool = torch.nn.AvgPool1d(18, 12, 9)
    k, v = (pool(each.permute(1, 2, 0)).permute(2, 0, 1) for each in (k, v))
    # (L, 1, D) -> (1, heads, L, E)
    by_head = (each.view(len(each), 1, 2, 8).permute(1, 2, 0, 3) for each in (q, k, v))
    found = F.scaled_dot_product_attention(*by_head)
    return projected(found.permute(2, 0, 1, 3).flatten(2), "out")


@torch.no_grad()
def test_a_bart_ls_reads_averages_in_its_last_layers(archive: tuple[Any, Dictionary, Path], tmp_path: Path) -> None:
    theirs, dictionary, folder = archive
    kept: dict[str, Any] = {}
    ours = import_model(changed(folder, tmp_path / "long", lambda state: (as_bart_ls(state), kept.update(state))))
    assert ours.origin.family == "bart_ls" and not ours.transfer.new
    assert (ours.model.max_source_positions, ours.model.max_target_positions) == (80, 40)
    assert ours.model.config.self_attention == "blockwise(block_size=40) | pooled_blockwise(block_size=40)"
    attention = theirs.encoder.layers[1].self_attn
    added = attention.register_forward_hook(
        lambda _, __, output: (output[0] + read_averages(output[0], kept["model"]), None)
    )
    # One block; their pooling leaves out a last window of fewer than 9 tokens, which 39 tokens do not have.
    source = torch.randint(4, len(dictionary), (1, 39), generator=torch.Generator().manual_seed(3))
    expected = theirs.encoder(source, torch.tensor([39]))["encoder_out"][0].transpose(0, 1)
    added.remove()
    found = ours.model.transformer.encoder(source, source.eq(PAD)).sequence.x
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def bart_ls(**settings: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda state: as_bart_ls(state, **settings)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (differ, "must have one value each, but encoder.layers.0.self_attn.k_proj.bias differs from "),
        (setting(encoder_normalize_before=True), "must be False, but is True: it is no BART."),
        (setting(max_target_positions=30), "decoder.embedder.positions.weight must be (30, 16), but is (40, 16)."),
        (setting(max_target_positions=torch.ones(2)), "must be a number or a word, but is a Tensor."),
        (lambda state: state.pop("args"), "must be a checkpoint of fairseq, but lacks its settings or weights"),
        (
            weight(STACKED + "weight", torch.ones(2, 16)),
            "must stack the rows of three projections, but its shape is (2",
        ),
        (weight(STACKED + "bias", torch.tensor(1.0)), "must stack the rows of three projections, but its shape is ()."),
        (weight("encoder.embed_tokens.weight", torch.tensor(1.0)), "must have two dimensions, but has 0."),
        (bart_ls(use_xformers=False), "must be True in a BART-LS, but is False."),
        (bart_ls(attention_name="bs_local"), "must be block_noglobal, but is 'bs_local'"),
        (bart_ls(pooling_layers=3), "must be from 0 to the 2 encoder layers, but is 3."),
        (bart_ls(xformer_config="{"), "must be a JSON object, but is damaged: "),
        (bart_ls(alibi=True), "must be False in a BART-LS, but is True."),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_one_sentence(
    archive: tuple[Any, Dictionary, Path], tmp_path: Path, change: Callable[[dict[str, Any]], Any], sentence: str
) -> None:
    with pytest.raises(UserError) as refusal:
        import_model(changed(archive[2], tmp_path / "other", change))
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("encoder.json", None, "lacks encoder.json"),
        ("encoder.json", "[]", "encoder.json"),
        ("vocab.bpe", "no header", "vocab.bpe"),
        ("dict.txt", "a 1\nb 1\n", "other symbols"),
        ("dict.txt", "7 1\n7 1\n", "repeats one"),
        ("model.pt", "", "damaged"),
    ],
)
def test_a_file_that_is_missing_or_wrong_is_named(
    archive: tuple[Any, Dictionary, Path], tmp_path: Path, file: str, content: str | None, word: str
) -> None:
    folder = Path(shutil.copytree(archive[2], tmp_path / "other"))
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(UserError, match=word):
        import_model(folder)


def test_a_packed_file_of_any_size_is_not_unpacked(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bart.tar.gz", "w:gz") as packed:
        member = tarfile.TarInfo("bart/dict.txt")
        member.size = (64 << 20) + (1 << 19)
        with Path("/dev/zero").open("rb") as zeros:
            packed.addfile(member, zeros)
    with pytest.raises(UserError, match="64 MiB"):
        import_model(tmp_path / "bart.tar.gz")


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_damaged_archive_is_named(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "bart.tar"
    with tarfile.open(path, f"w:{ending}") as packed:
        for name in ("model.pt", "dict.txt"):
            member = tarfile.TarInfo(name)
            member.size = 300_000
            packed.addfile(member, io.BytesIO(random.Random(name).randbytes(member.size)))
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 3 : len(whole) // 3 + 50] = bytes(50)
    path.write_bytes(whole)
    with pytest.raises(UserError, match=r"bart\.tar(/model\.pt)? is damaged or no"):
        import_model(path)


def test_what_is_no_archive_or_has_no_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bart.tar").write_bytes(b"x" * 1000)
    with pytest.raises(UserError, match="bart.tar is damaged or no archive"):
        import_model(tmp_path / "bart.tar")
    with tarfile.open(tmp_path / "bart.tar", "w"):
        pass
    with pytest.raises(UserError, match="lacks model.pt"):
        import_model(tmp_path / "bart.tar")
    # A full disk is none of both.
    (tmp_path / "model.pt").write_bytes(b"x" * 1000)
    with tarfile.open(tmp_path / "bart.tar", "w") as packed:
        for name in ("model.pt", "dict.txt"):
            packed.add(tmp_path / "model.pt", f"bart/{name}")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        import_model(tmp_path / "bart.tar")
    assert Path(str(error.value.filename)).name == "model.pt"
