"""What is fit to stand in a summary."""

import numpy as np
from tables import for_each

from pyramidions.extract import Budget, Lead, SelectionRules
from pyramidions.extract.extraction import extract
from pyramidions.extract.fitness import fit_for_summary
from pyramidions.text.outline import outline

NO = float("-inf")


def fit(text: str) -> list[float]:
    found = outline(text)
    return fit_for_summary(found, np.ones(len(found.sentences))).tolist()


@for_each("fragment", [":", "b).", "Page 12", "A paper", "1 2 3 4 5.", "* doe@example.org"])
def test_a_fragment_is_not_fit(fragment: str) -> None:
    assert fit(f"Bees fly very fast.\n\n{fragment}\n\nThey sting us.") == [1, NO, 1]


def test_a_repetition_is_not_fit() -> None:
    assert fit("Cats are nice. CATS are nice. Dogs are fine. Cats are nice.") == [1, NO, 1, NO]


@for_each("heading", ["References", "7. REFERENCES", "Acknowledgements", "Acknowledgment", "License"])
def test_back_matter_is_not_fit(heading: str) -> None:
    text = f"# Results\n\nBees fly very fast.\n\n# {heading}\n\nDoe wrote about bees in 2001."
    assert fit(text) == [1, NO]


def test_a_section_about_references_is_fit() -> None:
    text = "# Results\n\nBees fly very fast.\n\n# References in poems\n\nDoe wrote about bees."
    assert fit(text) == [1, 1]


def test_where_nothing_is_fit_all_may_stand() -> None:
    assert fit("Yes. No. Yes.") == [1, 1, 1]
    assert fit("") == []


def test_a_score_of_minus_infinity_stays() -> None:
    found = outline("Bees fly very fast. They sting us. Yes.")
    assert fit_for_summary(found, np.array([NO, 2.0, 3.0])).tolist() == [NO, 2.0, NO]
    assert fit_for_summary(found, np.array([NO, NO, 3.0])).tolist() == [NO, NO, 3.0]


def test_the_lead_has_no_gaps() -> None:
    found = outline("Bees fly very fast. They sting when they are much afraid of us. We run away.")
    scores = Lead().rank(found)
    rules = SelectionRules(Budget(words=8), stops=Lead.stops)
    assert extract(found, scores, rules).text == "Bees fly very fast."
    assert extract(found, scores, rules._replace(stops=False)).text == "Bees fly very fast. We run away."
