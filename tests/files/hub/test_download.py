"""Models from the hub: what is downloaded, what the cache gives, and what a user reads when it fails."""

import socket
import sys
import threading
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from hub_stand_in import Hub
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.cli.job import _held
from pyramidions.files.hub import HubName, absent, fetch, hub_name, when_damaged
from pyramidions.pretrained.bundle import read_bundle
from pyramidions.pretrained.model_kinds import SUMMARIZER

FILES = {"config.json": b"{}", "README.md": b"# A model", "weights.h5": b"x" * 99}
BART = HubName("owner/bart")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("facebook/bart-base", HubName("facebook/bart-base")),
        ("a/b_c.1@v1.0", HubName("a/b_c.1", "v1.0")),
        ("a/b@refs/pr/1", HubName("a/b", "refs/pr/1")),
        *(
            (text, None)
            for text in ("bart", "a/b/c", "/a/b", "../b", "a/b.pt", "a/b.tar.gz", "a/b--c", "a/b@", "a/b c")
        ),
    ],
)
def test_a_name_has_an_owner_and_maybe_a_revision(text: str, found: HubName | None) -> None:
    assert hub_name(text) == hub_name(Path(text)) == found


def test_a_path_that_exists_is_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    monkeypatch.chdir(tmp_path)
    assert hub_name("owner/bart") == BART
    (tmp_path / "owner" / "bart").mkdir(parents=True)
    assert hub_name("owner/bart") is None
    # With a revision it is no path.
    assert hub_name("owner/other") is None and hub_name("owner/other@main") == HubName("owner/other", "main")
    # A mistyped path in a folder here is not sought on the hub.
    with refused("owner/other does not exist: the folder owner"):
        read_bundle("owner/other", SUMMARIZER)
    assert not hub.asked


def test_only_what_is_wanted_is_downloaded_and_once(hub: Hub) -> None:
    sha = hub.add("owner/bart", FILES)
    for _ in range(2):
        found = fetch(BART, ["config.json", "*.md", "model.safetensors"])
        assert found.name == sha and {path.name for path in found.iterdir()} == {"config.json", "README.md"}
        assert hub.downloaded() == {"config.json", "README.md"}
    assert len([line for line in hub.asked if line.startswith("GET") and "/resolve/" in line]) == 2


def test_a_revision_stays_what_it_was_and_a_resumed_run_compares_commits(hub: Hub) -> None:
    first = hub.add("owner/bart", FILES)
    assert _held("owner/bart") == f"commit {first}"
    second = hub.models["owner/bart"].commit({"config.json": b"[]"})
    assert fetch(BART, ["*.json"]).name == second
    assert _held("owner/bart") == f"commit {second}" and _held("owner/bart@" + first) == f"commit {first}"
    found = fetch(HubName("owner/bart", first), ["*.json"])
    assert found.name == first and (found / "config.json").read_bytes() == b"{}"


def test_without_network_the_cache_is_used_and_said(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sha = hub.add("owner/bart", FILES)
    fetch(BART, ["config.json"])
    hub.down = 503
    capsys.readouterr()
    assert fetch(BART, ["config.json"]).name == sha
    line = f"The hub cannot be reached: the copy of owner/bart in the cache is used, commit {sha}.\n"
    assert capsys.readouterr().err.endswith(line)
    # What the cache has is read, and another commit is not.
    found = fetch(BART, ["*"])
    assert found.name == sha and {path.name for path in found.iterdir()} == {"config.json"}
    with refused("owner/bart is not whole in the cache"):
        fetch(BART, ["*"], "0" * 40)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    asked = len(hub.asked)
    assert fetch(BART, ["config.json"]).name == sha and len(hub.asked) == asked


def test_without_network_and_cache_a_sentence_says_so(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        with refused(f"the hub at {huggingface_hub.constants.ENDPOINT}"):
            fetch(BART, ["config.json"])
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with refused("HF_HUB_OFFLINE"):
        fetch(BART, ["config.json"])


def test_a_download_that_breaks_or_gives_another_commit_says_how_to_go_on(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("owner/bart", FILES)
    older = fetch(BART, ["config.json"]) / "config.json"
    hub.models["owner/bart"].commit({"config.json": b"[]"})

    def broken(*_: object, **__: object) -> None:
        raise huggingface_hub.errors.LocalEntryNotFoundError("an error happened")

    for download in (broken, lambda *_, **__: str(older)):
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
        with refused("The download of owner/bart failed: "):
            fetch(BART, ["config.json"])


@pytest.mark.parametrize(
    ("name", "down", "sentence"),
    [
        ("owner/none", 0, "owner/none exists neither on this machine nor on the hub, or it is private and needs `hf a"),
        ("owner/bart@v9", 0, "owner/bart has no revision v9 on the hub."),
        ("owner/gated", 0, "owner/gated is gated: ask for access at {}/owner/gated, then "),
        ("owner/bart", 429, "The hub refused owner/bart: "),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(hub: Hub, name: str, down: int, sentence: str) -> None:
    hub.add("owner/bart", FILES)
    hub.add("owner/gated", FILES, gated=True)
    hub.down = down
    with pytest.raises(UserError) as caught:
        fetch(hub_name(name) or BART, ["*"])
    assert str(caught.value).startswith(sentence.format(hub.address))


def test_a_base_install_says_what_brings_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with refused("huggingface_hub"):
        fetch(BART, ["*"])


def test_what_does_not_exist_is_named_as_the_hub_names_it() -> None:
    clauses = {
        "bart-base": "does not exist; on the hub, models are called OWNER/NAME",
        "a/b/c": "does not exist",
        "model.pt": "does not exist",
        "me/bart": "does not exist: the folder me here holds no bart; the hub's is me/bart@main",
    }
    assert {place: absent(place) for place in clauses} == clauses


def test_a_damaged_file_of_the_cache_says_how_to_download_it_again(hub: Hub) -> None:
    hub.add("owner/bart", {"config.json": b"{}"})
    path = fetch(BART, ["*"]) / "config.json"
    assert when_damaged(path) == f"; remove {path.parents[2]} to download it again"
    assert when_damaged(Path("bart/config.json")) == ""


def test_a_model_that_the_hub_knows_by_another_name_is_found_without_network(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha, about = hub.add("owner/bart", FILES), huggingface_hub.HfApi.repo_info

    def renamed(*args: Any, **options: Any) -> Any:
        found = about(*args, **options)
        found.id = "owner/BART"
        return found

    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", renamed)
    for hub.down in (0, 503):
        assert fetch(BART, ["config.json"]).name == sha


def test_a_download_runs_in_the_main_thread_so_that_ctrl_c_ends_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("owner/bart", FILES)
    threads, download = [], huggingface_hub.hf_hub_download

    def seen(*args: Any, **options: Any) -> str:
        threads.append(threading.current_thread())
        return download(*args, **options)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", seen)
    fetch(BART, ["*"])
    assert threads == [threading.main_thread()] * len(FILES)
