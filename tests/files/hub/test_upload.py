"""`pyramidions export --push`: what lies on the hub afterwards, and what a user reads when it fails."""

import shutil
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from hub_stand_in import TOKEN, Hub
from invoking import fail, run, succeed
from safetensors.torch import load_file
from small_pretrained import model_of, save

from pyramidions import Summarizer
from pyramidions.files.hub import HubName, fetch
from pyramidions.inference import load_model
from pyramidions.pretrained.importing import import_model, write_checkpoint


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model as the hub has it."""
    folder = save(model_of("bart"), tmp_path_factory.mktemp("models") / "bart")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A model\n")
    (folder / "flax_model.msgpack").write_bytes(b"of another library")
    return folder


@pytest.fixture(scope="module")
def exports(bart: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exports")
    write_checkpoint(folder / "bart.pt", import_model(bart).model)
    write_checkpoint(folder / "pooled.pt", import_model(bart, changes={"pooling_lengths": "None,8"}).model)
    for kind, checkpoint in (("pyramidions", "pooled.pt"), ("hf", "bart.pt")):
        succeed("export", folder / checkpoint, folder / kind)
    return {kind: folder / kind for kind in ("pyramidions", "hf")}


@pytest.fixture
def token(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return TOKEN


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def pickled(bart: Path, folder: Path) -> dict[str, bytes]:
    """Return the files of a model whose weights are pickled."""
    torch.save(load_file(bart / "model.safetensors"), folder / "weights")
    files = content(bart) | {"pytorch_model.bin": (folder / "weights").read_bytes()}
    del files["model.safetensors"]
    return files


def published(folder: Path) -> dict[str, bytes]:
    """Return what `export --push` publishes of an export as me/bart: in the card, its name goes for the folder's."""
    files = content(folder)
    local, own = (f"from_pretrained('{name}')".encode() for name in (folder.name, "me/bart"))
    assert local in files["README.md"]
    return {**files, "README.md": files["README.md"].replace(local, own)}


def test_an_export_is_on_the_hub_afterwards_and_a_later_one_replaces_all_of_it(
    hub: Hub, token: str, exports: dict[str, Path]
) -> None:
    for to in ("hf", "pyramidions"):
        done = succeed("export", exports[to], "--push", "me/bart")
        assert done.stdout.splitlines()[-1] == f"{hub.address}/me/bart" and TOKEN not in done.output
        _, files = hub.models["me/bart"].files("main") or ("", {})
        assert files == {".gitattributes": b"", **published(exports[to])} and not hub.models["me/bart"].private
    assert len(hub.models["me/bart"].commits) == 3


def test_a_checkpoint_is_exported_and_published_at_once(
    hub: Hub, token: str, exports: dict[str, Path], tmp_path: Path
) -> None:
    checkpoint = exports["hf"].parent / "bart.pt"
    done = succeed("export", checkpoint, tmp_path / "hf", "--push", "me/bart", "--revision", "v1")
    assert content(tmp_path / "hf") == content(exports["hf"])
    assert done.stdout.splitlines()[-1] == f"{hub.address}/me/bart/tree/v1"
    _, files = hub.models["me/bart"].files("v1") or ("", {})
    assert files == {".gitattributes": b"", **published(exports["hf"])}


def test_a_branch_is_made_and_the_main_one_stays(hub: Hub, token: str, exports: dict[str, Path]) -> None:
    for _ in range(2):
        done = succeed("export", exports["pyramidions"], "--push", "me/bart", "--revision", "trial", "--private")
    assert done.stdout.splitlines()[-1] == f"{hub.address}/me/bart/tree/trial" and hub.models["me/bart"].private
    main_files, trial = (hub.models["me/bart"].files(branch) or ("", {}) for branch in ("main", "trial"))
    assert main_files[1].keys() == {".gitattributes"} and "model.safetensors" in trial[1]


def test_a_summarizer_comes_from_the_hub(
    hub: Hub, exports: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = hub.add("me/bart", {**content(exports["pyramidions"]), "training.log": b"x"})
    hub.models["me/bart"].commit({"config.json": b"{}"})
    found = Summarizer.from_pretrained(f"me/bart@{first}", "cpu")
    assert found.model.origin is not None and found.model.origin.family == "bart"
    assert hub.downloaded() == {"config.json", "model.safetensors", "tokenizer.json"}
    Path("paper.txt").write_text("Bees fly fast.")
    succeed("summarize", f"me/bart@{first}", "paper.txt", "--max-len", 4, "--min-len", 1, "--device", "cpu")
    assert fail("summarize", "me/bart", "paper.txt").endswith("config.json must be as written by `pyramidions export`.")


def test_a_model_of_transformers_is_read_from_the_hub(hub: Hub, bart: Path, tmp_path: Path) -> None:
    first = hub.add("owner/bart", content(bart))
    (tmp_path / "paper.txt").write_text("Bees fly fast. " * 40)
    done = succeed("summarize", "owner/bart", tmp_path / "paper.txt", "--max-len", 4, "--min-len", 1, "--device", "cpu")
    assert f"owner/bart of the hub, commit {first[:12]}: a model of the family bart, licence apache-2.0" in done.stderr
    # Its longest document has 40 tokens.
    assert "sentences, selected by biomedical, were read" in done.stdout
    assert hub.downloaded() == set(content(bart)) - {"flax_model.msgpack"}


def test_an_import_comes_from_the_hub_and_knows_its_commit(
    hub: Hub, bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hub.add("owner/bart", content(bart))
    done = succeed("import", f"owner/bart@{first[:40]}", "-o", tmp_path / "bart.pt")
    assert done.stdout.startswith(f"owner/bart on the hub, commit {first}\nbart, licence apache-2.0: ")
    assert hub.downloaded() == set(content(bart)) - {"flax_model.msgpack"}
    assert load_model(tmp_path / "bart.pt").origin == ("owner/bart", "bart", first, "apache-2.0")
    # A folder here goes before the hub.
    shutil.copytree(bart, tmp_path / "owner" / "bart")
    monkeypatch.chdir(tmp_path)
    asked = len(hub.asked)
    assert run("import", "owner/bart", "-o", "again.pt").exit_code == 0 and len(hub.asked) == asked


def test_what_is_no_model_of_ours_on_the_hub_is_told_before_its_weights_are_downloaded(
    hub: Hub, tmp_path: Path
) -> None:
    hub.add("owner/data", {"README.md": b""})
    assert fail("summarize", "owner/data", __file__).endswith("but has no config.json.")
    hub.add("owner/llama", {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"", "tokenizer.json": b""})
    assert "but holds 'llama'" in fail("import", "owner/llama", "-o", tmp_path / "llama.pt")
    assert hub.downloaded() == {"config.json"}


def test_all_files_are_of_the_commit_that_came_first(
    hub: Hub, bart: Path, exports: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moving(name: HubName, *arguments: Any) -> Path:
        found = fetch(name, *arguments)
        hub.models[name.name].commit({"config.json": b"{}", "model.safetensors": b"x", "pytorch_model.bin": b"x"})
        return found

    for module in ("pretrained.source", "pretrained.bundle"):
        monkeypatch.setattr(f"pyramidions.{module}.fetch", moving)
    for number, files in enumerate([content(bart), pickled(bart, tmp_path)]):
        first = hub.add(f"owner/bart{number}", files)
        assert import_model(f"owner/bart{number}").origin.revision == first
    hub.add("me/bart", content(exports["pyramidions"]))
    Summarizer.from_pretrained("me/bart", "cpu")


def test_pickled_weights_are_downloaded_where_there_are_no_others(hub: Hub, bart: Path, tmp_path: Path) -> None:
    old = pickled(bart, tmp_path)
    hub.add("owner/both", old | content(bart))
    succeed("import", "owner/both", "-o", tmp_path / "both.pt")
    assert "pytorch_model.bin" not in hub.downloaded()
    hub.add("owner/old", old)
    succeed("import", "owner/old", "-o", tmp_path / "old.pt")
    assert (tmp_path / "old.pt").stat().st_size == pytest.approx((tmp_path / "both.pt").stat().st_size, abs=1000)


def test_what_the_hub_refuses_is_one_sentence_before_anything_is_exported(
    hub: Hub, exports: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, words = exports["pyramidions"], ("export", exports["hf"].parent / "bart.pt", tmp_path / "new", "--push")
    assert "HF_TOKEN" in fail("export", export, "--push", "me/bart")
    assert "HF_TOKEN" in fail(*words, "me/other")
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    assert fail("export", export, "--push", "me/bart").endswith("(403).")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.add("me/other", {"pytorch_model.bin": b""})
    assert fail(*words, "me/other").startswith("me/other ") and list(tmp_path.iterdir()) == []
    hub.add("me/public", {})
    assert "--private" in fail("export", export, "--push", "me/public", "--private")
    hub.down = 503
    assert hub.address in fail("export", export, "--push", "me/bart")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in fail("export", export, "--push", "me/bart")
    assert not any(model.commits and "config.json" in model.refs for model in hub.models.values())


def test_an_interrupted_upload_does_not_say_that_nothing_was_done(
    hub: Hub, token: str, exports: dict[str, Path]
) -> None:
    hub.no_commits = 504
    assert "504" in fail("export", exports["hf"], "--push", "me/bart")
    assert "me/bart" in hub.models
    hub.no_commits = 0
    succeed("export", exports["hf"], "--push", "me/bart")


def test_a_model_that_is_no_export_is_not_replaced(hub: Hub, token: str, exports: dict[str, Path], bart: Path) -> None:
    # The last is what transformers makes of an export, fine-tuned: its config keeps what ours said.
    tuned = content(exports["hf"]) | {"model.safetensors": b"other weights"}
    for files in (content(bart), {"pytorch_model.bin": b""}, tuned):
        hub.add("me/other", files)
        for to in ("hf", "pyramidions"):
            assert fail("export", exports[to], "--push", "me/other").startswith("me/other ")
        assert len(hub.models["me/other"].commits) == 1
    # Beside it, on a branch of its own, it replaces nothing.
    succeed("export", exports["hf"], "--push", "me/other", "--revision", "v1")
    hub.add("me/notes", {"README.md": b"# Soon"})
    succeed("export", exports["hf"], "--push", "me/notes")


@pytest.mark.parametrize("to", ["pyramidions", "hf"])
def test_what_is_no_whole_export_is_not_published(
    hub: Hub, token: str, exports: dict[str, Path], tmp_path: Path, to: str
) -> None:
    folder = shutil.copytree(exports[to], tmp_path / "export")
    for name in ("model.safetensors", "tokenizer.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert fail("export", folder, "--push", "me/bart").startswith(f"{folder / name} is damaged: its SHA-256 ")
        (folder / name).write_bytes(content)
    (folder / "model.safetensors").rename(tmp_path / "weights")
    assert fail("export", folder, "--push", "me/bart") == f"The exported model {folder} lacks model.safetensors."
    (tmp_path / "weights").rename(folder / "thesis.tex")
    assert fail("export", folder, "--push", "me/bart").endswith("but holds thesis.tex.")
    assert not hub.asked


def test_an_extractor_and_a_tokenizer_come_from_the_hub(
    hub: Hub, exports: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("me/bart", content(exports["pyramidions"]))
    monkeypatch.chdir(tmp_path)
    assert "Summarizer" in fail("extract", __file__, "--method", "me/bart")
    (tmp_path / "papers").mkdir()
    for split in ("train", "test"):
        Path("papers", f"{split}.jsonl").write_text(
            '{"article": "Bees fly fast over roses.", "abstract": "Bees fly."}\n'
        )
    succeed("prepare", "papers", "--out", "data", "--tokenizer", "me/bart", "--workers", 1)
    assert Path("data/tokenizer.json").read_bytes() == (exports["pyramidions"] / "tokenizer.json").read_bytes()
