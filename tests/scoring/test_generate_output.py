import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring.summaries import GeneratedSummaries, is_generate_output


def block(index, *texts):
    lines = [f"S-{index}\tsource"]
    for rank, text in enumerate(texts):
        lines += [f"H-{index}\t-{rank}.5\t▁h", f"D-{index}\t-{rank}.5\t{text}", f"P-{index}\t-0.1 -0.2"]
    return lines


def test_document_order_comes_back_and_other_lines_are_skipped():
    lines = ["INFO | loading", *block(2, "two"), *block(0, "zero"), *block(1, "one"), "Generate test with beam=4"]
    assert list(GeneratedSummaries(lines, 3)) == ["zero", "one", "two"]


def test_the_best_of_several_hypotheses_is_taken():
    assert list(GeneratedSummaries([*block(1, "best", "second"), *block(0, "best 0", "other")], 2)) == [
        "best 0",
        "best",
    ]


def test_an_empty_summary_and_tabs_inside_are_kept():
    assert list(GeneratedSummaries([*block(0, ""), *block(1, "a\tb")], 2)) == ["", "a\tb"]


def test_pieces_are_joined_and_markers_left_out():
    lines = ["H-0\t-1.0\t▁the ▁f ox . <n> ▁it ▁jumps", "D-0\t-1.0\t▁the ▁f ox . <n> ▁it ▁jumps"]
    assert list(GeneratedSummaries(lines, 1)) == ["the fox. it jumps"]


def test_hypotheses_serve_where_there_is_no_detokenised_line():
    assert list(GeneratedSummaries(["H-0\t-1.0\ttext"], 1)) == ["text"]


def test_an_output_that_ends_early_is_refused():
    lines = ["S-0\tsource", "T-0\ttarget", "H-0\t-1.0\t▁cut", "D-0\t-1.0\tcu"]
    with pytest.raises(UserError, match=r"gen\.txt: ends early: it lacks the last line, 'Generate \.\.\. with beam="):
        GeneratedSummaries(lines, 1, "gen.txt")
    assert list(GeneratedSummaries([*lines, "Generate test with beam=4: ROUGE"], 1)) == ["cu"]


@for_each(
    ("lines", "message"),
    [
        (block(0, "a"), r"gen\.txt: lacks 2 of 3 documents \(1, 2\)\."),
        ([*block(0, "a"), *block(3, "a")], r"gen\.txt: has document 3, but there are 3 references\."),
        ([*block(0, "a"), *block(1, "a"), *block(0, "b")], r"gen\.txt: document 0 comes twice\."),
        ([*block(0, "a"), *block(0, "b")], r"gen\.txt: document 0 comes twice\."),
        (["D-0\ttext without score"], r"gen\.txt: the line D-0 must hold a score and a text\."),
        ([], r"gen\.txt: lacks 3 of 3 documents \(0, 1, 2\)\."),
    ],
)
def test_a_dropped_or_repeated_document_is_refused(lines, message):
    with pytest.raises(UserError, match=message):
        GeneratedSummaries(lines, 3, "gen.txt")


@given(st.lists(st.text(st.characters(exclude_characters="\r\n▁"), max_size=20), min_size=1, max_size=8), st.randoms())
def test_any_order_of_batches_gives_the_documents_order(texts, shuffle: random.Random):
    indices = list(range(len(texts)))
    shuffle.shuffle(indices)
    lines = [line for index in indices for line in block(index, texts[index], "worse")]
    assert list(GeneratedSummaries(lines, len(texts))) == texts


def test_plain_text_is_no_generate_output():
    assert is_generate_output(block(0, "x"))
    assert not is_generate_output(["a summary", "D-day was in 1944", "S-0\tsource"])
