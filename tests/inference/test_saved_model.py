"""Whatever stands in an export or a checkpoint: it loads, or one sentence says what is wrong with it."""

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyramidions.base.errors import UserError
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import Summarizer, export_model, load_model
from pyramidions.models import PyramidionConfig, build, preset
from pyramidions.models.formats import FORMAT
from pyramidions.nn import Transformer
from pyramidions.text.tokenizer import PAD, Tokenizer

ONE_FIELD = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1, 2, 3, 10**6, 10**15]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["{}", "[]", "None,None", "4,2", '{"k": 1}', '{"base": 0}', "full", "lsh", "efficient", "funnel"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
BESIDE = ["format", "kind", "model", "sha256", "max_source_positions", "max_target_positions"]


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    """Return what fairseq-train saves of a tiny model, as far as it concerns us."""
    tokenizer = train_tokenizer(["a rose is a rose", "is a rose"], Settings(vocab_size=12))
    size = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "decoder_layers": 1, "max_source_positions": 32}
    config = preset("pyramidion", **size, self_attention="blockwise(block_size=8)", pooling_lengths="8,4")
    return as_saved(config, build(config, tokenizer.vocab_size, PAD), tokenizer)


def as_saved(config: PyramidionConfig, model: Transformer, tokenizer: Tokenizer) -> dict[str, Any]:
    fields = {"_name": "pyramidion", "arch": "pyramidion", "config_format": FORMAT, **asdict(config)}
    return {
        "cfg": {"model": fields},
        "model": {name.replace("coder.", "coder.core.", 1): weight for name, weight in model.state_dict().items()},
        "task_state": {"max_source_positions": 32, "max_target_positions": 8, "tokenizer": tokenizer.model_bytes},
    }


@pytest.fixture(scope="module")
def exported(state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    torch.save(state, folder / "model.pt")
    export_model(load_model(folder / "model.pt"), folder / "export", "# A model\n")
    return folder / "export"


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "copy"))


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    about = json.loads((folder / "config.json").read_text())
    edit(about)
    (folder / "config.json").write_text(json.dumps(about))


def loads_or_tells(path: Path) -> None:
    try:
        summarizer = Summarizer.from_pretrained(path)
        summarizer.summarize(["a rose"], min_len=0, max_len=1, beam=1)
    except UserError as error:
        assert "\n" not in str(error) and len(str(error)) < 500 and str(error).endswith((".", "…", "?"))


PARTS: dict[str, dict[str, str]] = {
    part: {"feed_forward": part} for part in ("gated", "sparse(block_size=4)", "experts(experts=4)")
}
PARTS |= {
    kind: {"pooling": kind, "pooling_lengths": "8,None"}
    for kind in ("soft_topk", "gumbel_topk", "funnel", "segments", "markers", "delete_gate")
}
PARTS["segments"]["self_attention"] = "segments(segment_length=8)"
PARTS["a pointer through poolings"] = {"output": "pointer", "pooling_lengths": "8,4"}


@pytest.mark.parametrize("fields", PARTS.values(), ids=PARTS)
@torch.no_grad()
def test_a_model_of_any_parts_computes_as_trained_after_export(fields: dict[str, str], tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["a rose is a rose", "is a rose"], Settings(vocab_size=13, sentence_markers=True))
    size = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1}
    config = preset("vanilla", **size, **fields, max_source_positions=32)
    trained = build(config, tokenizer.vocab_size, PAD, tokenizer.marker_id).eval()
    for counter in trained.buffers():
        counter.copy_(12345 + torch.arange(counter.numel()).view_as(counter))
    torch.save(as_saved(config, trained, tokenizer), tmp_path / "model.pt")
    model = load_model(tmp_path / "model.pt")
    export_model(model, tmp_path / "export", "# A model\n")
    source, target = torch.tensor([[*([tokenizer.marker_id, 5, 6, 7] * 4), 2]]), torch.tensor([[2, 7, 6]])
    for loaded in (model, load_model(tmp_path / "export")):
        torch.testing.assert_close(loaded.transformer(source, target), trained(source, target))
        assert all(one.equal(other) for one, other in zip(loaded.transformer.buffers(), trained.buffers(), strict=True))


@ONE_FIELD
@given(name=st.sampled_from([field.name for field in fields(PyramidionConfig)] + BESIDE), value=VALUES)
def test_any_value_in_the_settings_of_an_export_loads_or_is_one_sentence(name: str, value: Any, exported: Path) -> None:
    about = json.loads((exported / "config.json").read_text())
    (about if name in BESIDE else about["model"])[name] = value
    folder = exported.with_name("changed")
    shutil.copytree(exported, folder, dirs_exist_ok=True)
    (folder / "config.json").write_text(json.dumps(about))
    loads_or_tells(folder)


@ONE_FIELD
@given(
    place=st.sampled_from(["cfg", "model", "task_state"]),
    name=st.sampled_from(["model", "tokenizer", "max_source_positions", "max_target_positions", "embed_dim", None]),
    value=VALUES,
)
def test_any_value_in_a_checkpoint_loads_or_is_one_sentence(
    place: str, name: str | None, value: Any, state: dict[str, Any], tmp_path: Path
) -> None:
    changed = {**state, place: value if name is None else {**state[place], name: value}}
    torch.save(changed, tmp_path / "model.pt")
    loads_or_tells(tmp_path / "model.pt")


def test_an_export_without_hashes_or_a_kind_is_a_summarizer(copy: Path) -> None:
    change(copy, lambda about: about.pop("sha256"))
    assert load_model(copy).max_source_positions == 32
    assert json.loads((copy / "config.json").read_text())["kind"] == "summarizer"
    change(copy, lambda about: about.pop("kind"))
    assert load_model(copy).max_target_positions == 8


def test_a_link_to_an_export_stays_one(copy: Path) -> None:
    (link := copy.with_name("link")).symlink_to(copy)
    export_model(load_model(copy), link, "# Another card\n")
    assert link.is_symlink() and (copy / "README.md").read_text() == "# Another card\n"


def test_weights_of_a_half_precision_run_load_in_single(state: dict[str, Any], tmp_path: Path) -> None:
    weights = {name: weight.half() for name, weight in state["model"].items()}
    torch.save({**state, "model": weights}, tmp_path / "model.pt")
    transformer = load_model(tmp_path / "model.pt").transformer
    assert {parameter.dtype for parameter in transformer.parameters()} == {torch.float32}
    assert transformer.encoder.embedder.tokens.weight is transformer.decoder.embedder.tokens.weight


def test_a_full_disk_is_told_of_the_folder_that_was_asked_for(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyramidions.pretrained.export_folder.sync", full)
    with pytest.raises(OSError) as error:
        export_model(load_model(exported), tmp_path / "model", "# A model\n")
    assert error.value.filename == str(tmp_path / "model") and list(tmp_path.iterdir()) == []
