import subprocess
import sys
import zipfile

import pytest
import torch


def checkpoint(path, *values, arch="pyramidion", heads=8, stack="plain", **weights):
    table = torch.tensor(values)
    weights.setdefault("vocabulary", torch.tensor(3))
    dropout = 0.1 * len(path.name)
    settings = {"arch": arch, "num_heads": heads, "dropout": dropout, "stack": stack}
    state = {
        "cfg": {"model": {"_name": "pyramidion", "config_format": 3, **settings}},
        "model": {"embed.weight": table, "out.weight": table, "steps": torch.tensor(len(values)), **weights},
        "task_state": {"from": path.name},
        "last_optimizer_state": {"state": torch.zeros(1000)},
    }
    torch.save(state, path)
    return path


@pytest.fixture
def pair(tmp_path):
    return checkpoint(tmp_path / "a.pt", 1.0, 2.0), checkpoint(tmp_path / "b.pt", 3.0, 6.0)


def test_weights_are_averaged_and_the_rest_is_the_last_ones(run, pair, tmp_path):
    result = run("average", *pair, "-o", tmp_path / "mean.pt")
    assert result.exit_code == 0
    state = torch.load(tmp_path / "mean.pt", weights_only=True)
    assert state["model"]["embed.weight"].tolist() == [2.0, 4.0]
    assert state["model"]["steps"].item() == 2
    assert state["task_state"] == {"from": "b.pt"}
    assert state["cfg"]["model"]["arch"] == "pyramidion"
    assert "last_optimizer_state" not in state


def test_a_run_that_went_on_with_less_memory_is_one_model(run, tmp_path):
    pair = [checkpoint(tmp_path / f"{stack}.pt", 1.0, stack=stack) for stack in ("plain", "recomputing")]
    assert run("average", *pair, "-o", tmp_path / "mean.pt").exit_code == 0


def test_tied_weights_stay_tied(run, pair, tmp_path):
    run("average", *pair, "-o", tmp_path / "mean.pt")
    weights = torch.load(tmp_path / "mean.pt", weights_only=True)["model"]
    assert weights["embed.weight"].data_ptr() == weights["out.weight"].data_ptr()


def test_sums_are_made_in_double_precision_and_results_are_single(run, tmp_path):
    paths = [checkpoint(tmp_path / f"{i}.pt", 1.0, half=torch.tensor([v]).half()) for i, v in enumerate((1, 2048.0))]
    many = [*paths, *[paths[0]] * 2]
    run("average", *many, "-o", tmp_path / "mean.pt")
    half = torch.load(tmp_path / "mean.pt", weights_only=True)["model"]["half"]
    assert half.dtype == torch.float32
    assert half.item() == (3 + 2048) / 4


def test_no_checkpoint_that_is_averaged_is_replaced_since_it_holds_the_optimizer(fail, pair):
    content = pair[0].read_bytes()
    assert fail("average", *pair, "-o", pair[0]) == f"--out must not replace one of the inputs, but is {pair[0]}."
    assert pair[0].read_bytes() == content


def test_an_archive_that_is_no_checkpoint_is_not_replaced(fail, pair, tmp_path):
    thesis = tmp_path / "thesis.docx"
    with zipfile.ZipFile(thesis, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/data.pkl", "")
    content = thesis.read_bytes()
    sentence = f"--out must not replace a file of another kind, but {thesis} is not a checkpoint."
    assert fail("average", *pair, "-o", thesis) == sentence
    assert thesis.read_bytes() == content


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"values": (1.0, 2.0, 3.0)}, "All checkpoints must be of one model, but embed.weight is (2,) in"),
        (
            {"values": (1.0, 2.0), "extra": torch.ones(1)},
            "All checkpoints must be of one model, but extra is missing in",
        ),
        (
            {"values": (1.0, 2.0), "arch": "vanilla"},
            "All checkpoints must be of one model, but arch is 'pyramidion' in",
        ),
        # Of equal shapes, with other words or heads.
        ({"values": (1.0, 2.0), "vocabulary": torch.tensor(7)}, "All checkpoints must be of one model, but the finger"),
        ({"values": (1.0, 2.0), "heads": 4}, "All checkpoints must be of one model, but num_heads is 8 in"),
    ],
)
def test_another_model_is_refused(fail, pair, tmp_path, other, sentence):
    values = other.pop("values")
    other = checkpoint(tmp_path / "other.pt", *values, **other)
    assert fail("average", pair[0], other, "-o", tmp_path / "mean.pt").startswith(sentence)
    assert not (tmp_path / "mean.pt").exists()


def test_a_damaged_or_missing_file_is_refused(fail, pair, tmp_path):
    out = tmp_path / "mean.pt"
    whole = pair[1].read_bytes()
    place = whole.index(b"\x00\x00\x40\x40\x00\x00\xc0\x40")  # 3.0 and 6.0
    pair[1].write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
    assert fail("average", *pair, "-o", out) == f"{pair[1]} is damaged or no checkpoint."
    for data in (b"", b"no checkpoint", b"some lines\nof text .\n", whole[: len(whole) // 2], whole[:-100]):
        pair[1].write_bytes(data)
        assert fail("average", *pair, "-o", out) == f"{pair[1]} is damaged or no checkpoint."
    pair[1].unlink()
    assert fail("average", *pair, "-o", out) == f"The checkpoint {pair[1]} does not exist."
    assert not out.exists()


class Foreign:
    pass


def test_unsafe_objects_are_refused(fail, tmp_path):
    torch.save({"model": {}, "cfg": Foreign()}, tmp_path / "x.pt")
    sentence = fail("average", tmp_path / "x.pt", "-o", tmp_path / "mean.pt")
    assert sentence == f"{tmp_path / 'x.pt'} holds more than tensors and plain values; it is not loaded."


@pytest.mark.parametrize("state", [[1], {"a": 1}, {"model": {"w": 1}}])
def test_a_file_without_weights_is_refused(fail, tmp_path, state):
    torch.save(state, tmp_path / "x.pt")
    sentence = fail("average", tmp_path / "x.pt", "-o", tmp_path / "mean.pt")
    assert sentence.endswith("x.pt is no fairseq checkpoint: it lacks the weights under 'model'.")


def test_a_full_disk_leaves_the_old_file(pair, tmp_path):
    out = tmp_path / "mean.pt"
    old = pair[0].read_bytes()
    out.write_bytes(old)
    code = (
        "import resource, sys; from pyramidions.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); main(sys.argv[1:])"
    )
    arguments = [sys.executable, "-c", code, "average", *map(str, pair), "-o", str(out)]
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"Error: {out}: File too large."
    assert "Traceback" not in run.stderr
    assert out.read_bytes() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pt", "b.pt", "mean.pt"]


def test_a_text_file_is_no_checkpoint(fail, tmp_path):
    text = tmp_path / "x.pt"
    for line in ("a text", "0 1 2", "(1, 2)", "]", "# Title", "The cat.", "l", "R.", "."):
        text.write_text(f"{line}\n")
        assert fail("average", text, "-o", tmp_path / "mean.pt") == f"{text} is damaged or no checkpoint."


@pytest.mark.parametrize("config", [[1], {"model": [1]}])
def test_a_configuration_of_another_kind_is_refused(fail, tmp_path, config):
    torch.save({"model": {"w": torch.ones(1)}, "cfg": config}, tmp_path / "x.pt")
    sentence = fail("average", tmp_path / "x.pt", "-o", tmp_path / "mean.pt")
    assert sentence.endswith("x.pt is no fairseq checkpoint: 'cfg' must hold the settings under 'model'.")


def test_a_checkpoint_that_cannot_be_opened_is_not_called_damaged(fail, tmp_path):
    sentence = f"The checkpoint {tmp_path} must be a file, but is a folder."
    assert fail("average", tmp_path, "-o", tmp_path / "mean.pt") == sentence


def test_a_missing_folder_is_named(fail, pair, tmp_path):
    out = tmp_path / "nowhere" / "mean.pt"
    assert fail("average", *pair, "-o", out) == f"--out must be a file in a folder that exists, but is {out}."
