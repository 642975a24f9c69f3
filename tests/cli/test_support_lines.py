"""`pyramidions summarize --explain --json`: what supports each sentence."""

from typing import Any

from explanations import example

from pyramidions.inference import Summary
from pyramidions.inference.summary import as_plain
from pyramidions.inference.supported_sentences import SummarySentence, Supporting


def line(*summaries: Summary) -> dict[str, Any]:
    return as_plain(summaries)


def test_support_of_all_pieces_is_in_one_list() -> None:
    summary = example().summary
    copied = SummarySentence(
        "It is so.", 2 / 3, True, (Supporting("So it is so.", 3, 8, 2 / 3),), (Supporting("No.", 0, 2, 0.123456),)
    )
    made_up = SummarySentence("Never seen.", 0.0, False, (), None)
    found = line(summary._replace(sentences=(copied,)), summary._replace(sentences=(made_up,)))
    assert found["support"] == [
        {
            "sentence": "It is so.",
            "supported": True,
            "recall": 0.6667,
            "by_words": [{"sentence": "So it is so.", "share": 0.6667}],
            "by_attention": [{"sentence": "No.", "share": 0.1235}],
        },
        {"sentence": "Never seen.", "supported": False, "recall": 0.0, "by_words": [], "by_attention": None},
    ]


def test_a_summary_that_was_not_explained_has_none() -> None:
    assert "support" not in line(example().summary)


def test_an_explained_summary_without_sentences_has_an_empty_list() -> None:
    assert line(example().summary._replace(sentences=()))["support"] == []
