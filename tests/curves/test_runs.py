from pathlib import Path

import pytest

from pyramidions.curves.training_log import find_log, run_names
from pyramidions.errors import UserError

LINE = "epoch 001 | loss 8 | num_updates 25 | wall 5\n"


def log(path: Path, text: str = LINE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_train_log_of_a_row_is_taken_before_its_other_logs(tmp_path):
    log(tmp_path / "another.log")
    log(tmp_path / "time.log", "$ pyramidions time\n")
    usual = log(tmp_path / "train.log")
    assert find_log(tmp_path) == find_log(usual) == usual


def test_a_log_of_another_name_or_further_below_is_found(tmp_path):
    deep = log(tmp_path / "2026-11-20" / "08-57" / "hydra_train.log")
    log(tmp_path / "score.log", "nothing\n")
    assert find_log(tmp_path) == deep
    near = log(tmp_path / "mine.log")
    assert find_log(tmp_path) == near


def test_several_logs_are_named_to_choose_from(tmp_path):
    for name in "abcdefg":
        log(tmp_path / f"{name}.log")
    with pytest.raises(UserError, match=r"holds 7: choose among .*a\.log, .*e\.log and 2 more\.$"):
        find_log(tmp_path)


def test_what_was_looked_for_is_said(tmp_path):
    with pytest.raises(UserError, match="no .*log in .* has a line of training or validation"):
        find_log(tmp_path)
    with pytest.raises(UserError, match="x.txt has no line of training .*--log-format none writes none"):
        find_log(log(tmp_path / "x.txt", "hello\n"))
    with pytest.raises(UserError, match="nothing does not exist"):
        find_log(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["runs/a/train.log"], ["a"]),
        (["runs/one.log"], ["one"]),
        (["arxiv/t3/deep", "arxiv/t3/block"], ["deep", "block"]),
        (["arxiv/t3/deep/train.log", "pubmed/t3/deep/train.log"], ["arxiv/t3/deep", "pubmed/t3/deep"]),
        (["a/t3/deep", "b/t3/deep", "a/t3/block"], ["a/t3/deep", "b/t3/deep", "a/t3/block"]),
        (["runs/train.log", "runs/old/train.log"], ["runs", "old"]),
        (["runs/a/train.log", "runs/a.log"], ["runs/a/train.log", "runs/a.log"]),
        (["new/one.log", "old/one.log", "old/two.log"], ["new/one", "old/one", "old/two"]),
    ],
)
def test_a_name_is_the_path_below_the_folder_that_runs_share(tmp_path, monkeypatch, paths, names):
    monkeypatch.chdir(tmp_path)
    for path in paths:
        if path.endswith(".log"):
            log(Path(path))
        else:
            Path(path).mkdir(parents=True)
    assert run_names([Path(path) for path in paths]) == names


def test_a_name_is_one_line_of_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_names([Path("a\nb\udcff")]) == ["a�b�"]
