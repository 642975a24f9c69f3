"""What supports the sentences of a summary, by words and by attention: hand-made documents."""

import pytest
import torch

from pyramidions.inference.explanation import Explanation, Trace
from pyramidions.inference.summary import Summary
from pyramidions.inference.supported_sentences import supported_sentences

DOCUMENT = [" Cells", " divide", " in", " warm", " water", ".", " Cold", " water", " stops", " them", ".", ""]
WRITTEN = [" Cold", " water", " stops", " them", ".", " Unicorns", " sing", " at", " night", ".", ""]
# The first sentence looks at the first one of the document, the second at both.
DREW_ON = torch.zeros(len(WRITTEN), len(DOCUMENT))
DREW_ON[:5, :6] = 1 / 6
DREW_ON[5:, 0] = 0.25
DREW_ON[5:, 6] = 0.75


def test_a_copied_sentence_is_its_own_support_and_a_made_up_one_has_none() -> None:
    copied, made_up = supported_sentences(DOCUMENT, WRITTEN, DREW_ON)
    assert copied.text == "Cold water stops them." and copied.recall == 1 and copied.is_supported
    assert copied.by_words == (("Cold water stops them.", 6, 11, 1.0),)
    assert made_up.text == "Unicorns sing at night." and made_up.recall == 0 and made_up.is_supported is False
    assert made_up.by_words == ()


def test_attention_is_summed_over_the_sentences_of_the_document() -> None:
    first, second = supported_sentences(DOCUMENT, WRITTEN, DREW_ON)
    assert [place.start for place in first.by_attention] == [0, 6]
    assert [place.share for place in first.by_attention] == pytest.approx([1, 0])
    assert [place.start for place in second.by_attention] == [6, 0]
    assert [place.share for place in second.by_attention] == pytest.approx([0.75, 0.25])
    # Unknown attention names no sentence, and of a sentence of one word nothing is said.
    assert {sentence.by_attention for sentence in supported_sentences(DOCUMENT, WRITTEN, None)} == {None}
    (alone,) = supported_sentences(DOCUMENT, [" Cells", ""], None)
    assert alone.recall is alone.is_supported is None and alone.by_words == ()


@pytest.mark.parametrize(
    ("tokens", "sentences"),
    [
        # An empty line ends a sentence, as a heading does; the end of a line does not.
        ([" Results", "\n\nCells", "\ndivide", "."], ["Results", "Cells divide."]),
        # So does a marker.
        ([" no", " stop", "", " here", ""], ["no stop", "here"]),
        ([" et", " al", ".", " said", " so", "."], ["et al. said so."]),
        (["", "  ", ""], []),
    ],
)
def test_sentences_end_at_empty_lines_and_markers(tokens: list[str], sentences: list[str]) -> None:
    assert [sentence.text for sentence in supported_sentences(tokens, tokens, None)] == sentences


def test_what_was_asked_supports_nothing() -> None:
    query = [" Cold", " water", " stops", " them", "?", ""]
    about = Summary("Cold water stops them.", -1.0, len(WRITTEN), len(DOCUMENT), len(DOCUMENT))
    unknown = Trace([], 0, None, None)
    answer = Explanation(about, [*query, *DOCUMENT], WRITTEN[:5], unknown, asked=len(query))
    (sentence,) = answer.sentences
    assert [place.start for place in sentence.by_words] == [len(query) + 6]
    (unasked,) = Explanation(about, [*query, " Cells", "."], WRITTEN[:5], unknown, asked=len(query)).sentences
    assert unasked.is_supported is False
