"""Capitals of a summary by a model that writes none."""

import pytest

from pyramidions.text.casing import Casing

PAPER = """METHODS
The mRNA of Escherichia coli was read. In Paris, E. coli grows with NASA. We saw BRCA1 and brca1, and BRCA1 again.
A mouse of strain C57BL ate. Mice eat. Growth was slow.
"""


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("we read mrna of escherichia coli in paris.", "We read mRNA of Escherichia coli in Paris."),
        ("nasa saw brca1.", "NASA saw BRCA1."),
        ("mrna grows. mice eat.", "mRNA grows. Mice eat."),
        # "Mice" and "Growth" have their capitals only as first words, and METHODS as a heading.
        ("the mice have methods of growth.", "The mice have methods of growth."),
        ("what no paper says: xyz.", "What no paper says: xyz."),
        ("", ""),
    ],
)
def test_words_are_written_as_the_document_writes_them(summary: str, expected: str) -> None:
    assert Casing(PAPER).restore(summary) == expected


def test_a_summary_with_capitals_keeps_its_words_where_the_document_has_none() -> None:
    assert Casing("mice eat.").restore("RNA of 3 mice. (dogs) eat") == "RNA of 3 mice. (Dogs) eat"
