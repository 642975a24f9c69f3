import json
import lzma
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.text.normalization import normalize, split_sentences

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def test_normalisation_is_nfkc_on_one_line_without_control_characters():
    assert normalize("  ﬁve\u00a0\tＡ\x00b\r\n\u2028c\x7f ") == "five Ab c"


def test_invisible_characters_go_and_joiners_stay():
    assert normalize("\ufeffhy\u00adphen zero\u200bwidth \u202eright ن\u200cم") == "hyphen zerowidth right ن\u200cم"


def test_lone_surrogates_go():
    assert normalize("a\ud800b") == "ab"
    assert normalize("a\ud800b").encode("utf-8") == b"ab"


@given(st.text())
def test_normalising_again_changes_nothing(text):
    assert normalize(normalize(text)) == normalize(text)


@given(st.text(st.characters(exclude_categories=[])))
def test_normalised_text_has_no_line_break_and_encodes(text):
    normalized = normalize(text)
    assert normalized.splitlines() in ([], [normalized])
    normalized.encode("utf-8")


def test_lower_cased_text_is_split():
    text = "markers are useful  <cit> . such collections of 3.5 kb help. why?\nbecause (see ref. 4) they do."
    assert split_sentences(text) == [
        "markers are useful <cit> .",
        "such collections of 3.5 kb help.",
        "why?",
        "because (see ref. 4) they do.",
    ]


def test_the_splitter_is_the_release_that_labels_and_scores_rest_on():
    # Its releases from 1.0.28 on fail here, one by one: the papers change first, then Polish, then Japanese.
    counts = []
    for split in ("train", "valid", "test"):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers:
            counts.append(sum(len(split_sentences(json.loads(line)["article"])) for line in papers))
    assert counts == [33011, 3048, 6162]
    assert len(split_sentences("Przyszedł np. prof. Nowak. Wyszedł.", "pl")) == 2
    assert len(split_sentences("Dr. Smith arrived. He left.", "ja")) == 2


def test_blank_text_has_no_sentence():
    assert split_sentences(" \n\x00") == []


@given(st.text("aB .?!\n\"'()<cit>e.g1", max_size=200))
def test_sentences_joined_are_the_normalised_text(text):
    assert " ".join(split_sentences(text)) == normalize(text)


@pytest.mark.parametrize("marks", [4, 10, 50])
def test_sentences_stay_whole_where_a_part_with_many_marks_ends(monkeypatch, marks):
    text = "We measured 3.5 kb, twice. Why? Because \u201cit helps\u201d; see below! " * 20
    whole = split_sentences(text)
    monkeypatch.setattr("pyramidions.text.normalization._MOST_MARKS", marks)
    assert len(whole) == 60
    assert split_sentences(text) == whole


@pytest.mark.parametrize("hostile", ["![", "'", '\u3002\u201c"', "\u2018''"])
def test_time_is_linear_in_marks(monkeypatch, hostile):
    monkeypatch.setattr("pyramidions.text.normalization._MOST_MARKS", 1000)

    def seconds(size):
        text = hostile * (size // len(hostile))
        start = time.process_time()
        split_sentences(text)
        return time.process_time() - start

    # 16 times as long: 16 if linear, 256 if quadratic.
    assert min(seconds(64_000) / seconds(4_000) for _ in range(3)) < 64
