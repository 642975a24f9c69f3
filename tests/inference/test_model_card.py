"""A card shows what comes from outside as it stands, whatever it spells."""

import json
from pathlib import Path

import pytest

from pyramidions.inference.model_card import _scores
from pyramidions.markdown import plain


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("CC BY-NC 4.0", "CC BY-NC 4.0"),
        ("my_summarizer", "my_summarizer"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("&lt;", "&amp;lt;"),
        ("a\n\n# b", "a # b"),
        ("# b", "\\# b"),
        ("- b", "\\- b"),
        ("> b", "\\> b"),
        ("1. b", "1\\. b"),
        ("[a](javascript:b)", "\\[a\\](javascript:b)"),
        ("__init__ *b* `c` ~d~ \\", "\\_\\_init\\_\\_ \\*b\\* \\`c\\` \\~d\\~ \\\\"),
        ("caf\udce9", "caf?"),
    ],
)
def test_markdown_and_html_are_shown_and_not_obeyed(text: str, escaped: str) -> None:
    assert plain(text) == escaped


def test_a_systems_name_stays_in_its_cell(tmp_path: Path) -> None:
    means = {key: {"mean": 1.0, "low": 0.5, "high": 2.0} for key in ("rouge1", "rouge2", "rougeL", "rougeLsum")}
    scores = {"signature": "rouge | n=1 <b>", "systems": {"a|b\n<i>": means}}
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    head, _, row, *_, signature = _scores(tmp_path / "scores.json").splitlines()
    assert head.count("|") == row.count("|") == 6 and row.startswith("| a&#124;b &lt;i> | 1.0 [0.5, 2.0] |")
    assert signature == "Means with 95% intervals. rouge | n=1 &lt;b>"
