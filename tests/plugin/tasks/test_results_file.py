from pathlib import Path

import pytest

from pyramidions.plugin.tasks.results_file import set_aside

WHOLE = "S-0\tsource\nT-0\ttarget\nH-0\t-1.0\t▁a\nD-0\t-1.0\ta\nGenerate test with beam=4: ROUGE\n"


@pytest.mark.parametrize("length", [0, 10, WHOLE.index("Generate")])
def test_results_that_end_early_do_not_look_like_results(
    tmp_path: Path, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "generate-test.txt").write_text(WHOLE[:length])
    set_aside(tmp_path / "generate-test.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["generate-test.txt.partial"]
    assert (tmp_path / "generate-test.txt.partial").read_text() == WHOLE[:length]
    assert caplog.messages == [
        f"{tmp_path}/generate-test.txt was not written to its end, and is now generate-test.txt.partial."
    ]


def test_whole_results_stay(tmp_path: Path) -> None:
    (tmp_path / "generate-test.txt").write_text(WHOLE)
    set_aside(tmp_path / "generate-test.txt")
    set_aside(tmp_path / "none.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["generate-test.txt"]
