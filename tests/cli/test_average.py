"""`pyramidions average`; tests/bad_input has what it refuses in files of other kinds."""

import zipfile
from pathlib import Path

import pytest
import torch
from full_disk import files_of_at_most
from invoking import fail, run, succeed


def checkpoint(path: Path, *values: float, heads: int = 8, stack: str = "plain", **weights: torch.Tensor) -> Path:
    table = torch.tensor(values)
    weights.setdefault("vocabulary", torch.tensor(3))
    dropout = 0.1 * len(path.name)
    settings = {"arch": "pyramidion", "num_heads": heads, "dropout": dropout, "stack": stack}
    state = {
        "cfg": {"model": {"_name": "pyramidion", "config_format": 3, **settings}},
        "model": {"embed.weight": table, "out.weight": table, "steps": torch.tensor(len(values)), **weights},
        "task_state": {"from": path.name},
        "last_optimizer_state": {"state": torch.zeros(1000)},
    }
    torch.save(state, path)
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return checkpoint(tmp_path / "a.pt", 1.0, 2.0), checkpoint(tmp_path / "b.pt", 3.0, 6.0)


def test_weights_are_averaged_and_the_rest_is_the_last_ones(pair: tuple[Path, Path], tmp_path: Path) -> None:
    succeed("average", *pair, "-o", tmp_path / "mean.pt")
    state = torch.load(tmp_path / "mean.pt", weights_only=True)
    weights = state["model"]
    assert weights["embed.weight"].tolist() == [2.0, 4.0]
    assert weights["embed.weight"].data_ptr() == weights["out.weight"].data_ptr()
    assert weights["steps"].item() == 2
    assert state["task_state"] == {"from": "b.pt"}
    assert state["cfg"]["model"]["arch"] == "pyramidion"
    assert "last_optimizer_state" not in state


def test_a_run_that_went_on_with_less_memory_is_one_model(tmp_path: Path) -> None:
    pair = [checkpoint(tmp_path / f"{stack}.pt", 1.0, stack=stack) for stack in ("plain", "recomputing")]
    succeed("average", *pair, "-o", tmp_path / "mean.pt")


def test_sums_are_made_in_double_precision_and_results_are_single(tmp_path: Path) -> None:
    paths = [checkpoint(tmp_path / f"{i}.pt", 1.0, half=torch.tensor([v]).half()) for i, v in enumerate((1, 2048.0))]
    run("average", *paths, *[paths[0]] * 2, "-o", tmp_path / "mean.pt")
    half = torch.load(tmp_path / "mean.pt", weights_only=True)["model"]["half"]
    assert half.dtype == torch.float32
    assert half.item() == (3 + 2048) / 4


def test_a_model_of_equal_shapes_with_other_words_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "other.pt", 1.0, 2.0, vocabulary=torch.tensor(7))
    assert "fingerprint" in fail("average", pair[0], path, "-o", tmp_path / "mean.pt")
    assert not (tmp_path / "mean.pt").exists()


def test_an_archive_that_is_no_checkpoint_is_not_replaced(pair: tuple[Path, Path], tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.docx"
    with zipfile.ZipFile(thesis, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/data.pkl", "")
    content = thesis.read_bytes()
    assert "thesis.docx" in fail("average", *pair, "-o", thesis)
    assert thesis.read_bytes() == content


def test_a_full_disk_leaves_the_old_file(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "mean.pt"
    old = pair[0].read_bytes()
    out.write_bytes(old)
    with files_of_at_most(500):
        assert fail("average", *pair, "-o", out) == f"{out}: File too large."
    assert out.read_bytes() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pt", "b.pt", "mean.pt"]


@pytest.mark.parametrize("line", ["0 1 2", "(1, 2)", "]", "l", "."])
def test_a_text_whose_first_letters_are_a_program_of_pickle_is_no_checkpoint(line: str, tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_text(f"{line}\n")
    assert "x.pt" in fail("average", tmp_path / "x.pt", "-o", tmp_path / "mean.pt")
