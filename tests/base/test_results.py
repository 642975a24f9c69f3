"""How results show themselves: briefly, in notebooks, as plain values, and beside others."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import explanations
import extractions
import numpy as np
import pytest
import small_exports
import small_language_models

from pyramidions import Extractor, SegmentedText, Segmenter, Summarizer, Summary
from pyramidions.inference.summary import Coverage

SECTIONS = tuple(
    Summary(f"About {name} <b>.", -1.0, 3, 9, 9, coverage=Coverage(heading=name)) for name in ("bees", "rain")
)
SUMMARY = Summary("About bees <b>. About rain <b>.", -1.0, 6, 1018, 18, pieces=SECTIONS)
RESULTS = {
    "<Extraction of 2 of 6 sentences: ": (extractions.example, '"summary": "'),
    "<Summary of 18 of 1,018 tokens: 'About bees <b>. About rain <b>.'>": (lambda: SUMMARY, '"summary": "About bees'),
    "<Explanation of <Summary of 6 of 10 tokens: ": (explanations.example, '"support": ['),
    "<SegmentedText of 2 segments: 'ab cd'>": (
        lambda: SegmentedText("ab cd", np.array([0, 0, 1, 0, 1], bool), None, Counter("é")),
        '"segments": ["ab ", "cd"], "rest": ""',
    ),
}


@pytest.mark.parametrize("begin", RESULTS)
def test_a_result_is_shown_briefly_and_escaped_as_plain_values_and_can_be_compared(begin: str) -> None:
    make, holds = RESULTS[begin]
    found: Any = make()
    assert repr(found).startswith(begin) and len(repr(found)) < 200
    assert "<p>" in found._repr_html_() and "<b>" not in found._repr_html_()
    assert holds in json.dumps(found.to_dict())
    assert (found == found) is True and (found != found) is False
    assert (found == make()) is (begin.startswith("<Summary"))
    assert (found != "a text") is True


def test_a_summary_by_section_has_their_headings() -> None:
    assert SUMMARY._repr_html_() == (
        "<h4>bees</h4><p>About bees &lt;b&gt;.</p><h4>rain</h4><p>About rain &lt;b&gt;.</p>"
    )
    assert SUMMARY.to_dict() == {
        "summary": SUMMARY.text,
        "pieces": 2,
        "scores": [-1.0, -1.0],
        "document_tokens": 18,
        "read_tokens": 18,
        "sections": [{"heading": name, "summary": f"About {name} <b>."} for name in ("bees", "rain")],
    }


def test_what_makes_results_is_shown_in_a_line(tmp_path: Path) -> None:
    assert repr(Extractor()) == "Extractor('auto')"
    summarizer = Summarizer.from_pretrained(small_exports.summarizer(tmp_path / "summarizer"), "cpu")
    parameters = sum(weight.numel() for weight in summarizer.model.network.parameters())
    assert repr(summarizer) == f"Summarizer(<SavedModel of {parameters:,} parameters>)"
    segmenter = Segmenter.from_pretrained(small_language_models.saved(tmp_path, "gumbel"), "cpu")
    assert repr(segmenter).startswith("Segmenter(<SavedLanguageModel of ")
