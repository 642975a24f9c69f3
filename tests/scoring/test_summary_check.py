"""Sentences of a summary beside what supports them in the document, and what the document does not hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from pyramidions.scoring import check_summary
from pyramidions.scoring.metric import Judged
from pyramidions.text.headings import HeadedText

DOCUMENT = HeadedText.of(
    [
        *(1, "On Apis\n\n", 2, "Methods\n\n", "We counted 1,000 bees in Rome. ", "They were fed.\n\n"),
        *(2, "Results\n\n", "All bees fly fast."),
    ]
)


def test_a_sentence_has_the_share_of_its_pairs_that_three_sentences_of_the_document_hold() -> None:
    checked = check_summary("All bees fly far. We counted 1,000 bees. Wax melts. Yes.", DOCUMENT)
    fly, counted, wax, yes = checked.sentences
    # all bees, bees fly; fly far is missing.
    assert fly.recall == pytest.approx(2 / 3) and [each.text for each in fly.by_words] == ["All bees fly fast."]
    assert [each.is_supported for each in checked.sentences] == [True, True, False, None]
    assert counted.recall == 1 and yes.recall is None and wax.by_words == () and wax.missing == ()


@pytest.mark.parametrize(
    ("document", "sentence", "language", "missing"),
    [
        (DOCUMENT, "We counted 1000 bees in Rome.", "en", ()),
        (DOCUMENT, "We counted 2,000 bees on 3 May.", "en", ("2,000", "3", "May")),
        (DOCUMENT, "Bees of Rome met Apis and Apis.", "en", ()),  # a name in a heading alone
        (DOCUMENT, "Wasps of Paris met NASA in Paris.", "en", ("Paris", "NASA")),
        (DOCUMENT, "In 1,0000 days it rose by 3.5%, 3.5% more.", "en", ("1,0000 days", "3.5%")),
        (DOCUMENT, "So I gave B12, IL-8 and 1e5 to 共7只.", "en", ("B12", "IL-8", "1e5", "7")),
        (DOCUMENT, "We counted 1 000 bees.", "en", ()),
        (DOCUMENT, "We counted 1\u2009000 bees, 2 000 wasps.", "en", ("2000",)),
        (DOCUMENT, "Die Bienen tragen mRNA.", "de", ("mRNA",)),
        (DOCUMENT, "NASA counted.", "en", ("NASA",)),
        # Whatever stands behind them.
        ("It weighs 5kg.", "It weighs 7kg.", "en", ("7kg",)),
        ("It weighs 5 kg.", "It weighs 5kg.", "en", ()),
        ("It cost $5m in 90 minutes.", "It cost $7m in 90min.", "en", ("$7m",)),
        ("They got 10mg/kg on the 3rd.", "They got 20mg/kg on the 4th.", "en", ("20mg/kg", "4th")),
        ("They saw 10⁶ cells of 5×10⁻⁸ g.", "They saw 106 cells of 5×10^−8 g.", "en", ("106",)),
        ("They saw 106 cells.", "They saw 10⁶ cells.", "en", ("10^6",)),
        ("It took 2½ cups.", "It took 2 1/2 cups.", "en", ()),
        ("It took 21/2 cups.", "It took 2½ cups.", "en", ("2.5",)),
        ("FooBar™ and O´Brien saw 10⁶B in 2009¹.", "FooBar™ and O´Brien saw 10⁶B in 2009.", "en", ()),
        # What they count, where both say so; money and scales.
        ("It ran 5 km.", "It ran 5 m.", "en", ("5 m",)),
        ("It ran 5 metres.", "It ran 5m in 5.", "en", ()),
        ("It lost 5%.", "It lost 5 percent, or 5 kg.", "en", ("5 kg",)),
        ("It lost 5% to 10%.", "It lost 5-10%.", "en", ()),
        ("Es waren 5 %.", "Es waren 5 Prozent.", "de", ()),
        ("It holds 5 m² of wax.", "It holds 5 m³ of wax.", "en", ("5 m3",)),
        ("It gave 20mg/kg.", "It gave 20 mg/l.", "en", ("20 mg/l",)),
        ("It cost $5bn and €7.", "It cost $5m, $7 and 5 billion dollars.", "en", ("$5m", "$7")),
        ("It cost US$5m.", "It cost US$5 million, or 2 to 3 million.", "en", ("2", "3 million")),
        ("It cost $5 million.", "It cost 5 million euros, or 5m people.", "en", ("5 million",)),
        ("It sold 20k hives.", "It sold 20,000, or 20 thousand.", "en", ()),
        # Signs, codes and other spellings.
        ("It was −5 in May.", "It fell by 5 in May, to -5.", "en", ()),
        ("It was 5 in May.", "It was -5 in May.", "en", ("-5",)),
        ("Phase 3 of type 2 in the 1990s.", "It was a phase-3 type-2 trial of the mid-1990s.", "en", ()),
        ("Он видел Ту-154.", "Он видел Ил-154.", "ru", ("Ил-154",)),
        ("It has 300 K and 5 mM of 1e999999.", "It has 300 kelvin and 5 mM.", "en", ()),
        ("In arm 5 100 patients flew.", "In arm 5, 100 flew.", "en", ()),
        ("GPT-4 met F-16 and H1N1.", "GPT-5 met F-18, H5N1 and GPT4.", "en", ("GPT-5", "F-18", "H5N1")),
        ("It took 1'000'000 of .5 g in the U.S.", "It took 1,000,000 of 0.5 g in the US.", "en", ()),
        ("It took 1e-5 s.", "It took 1e-6 s.", "en", ("1e-6 s",)),
        ("Five bees met the fourth.", "5 bees met the 4th, and a 6th.", "en", ("6th",)),
        ("共三千只，٣。", "共四千只，3。", "zh", ("四千",)),
        ("1 234,56 €", "1234,56 €", "fr", ()),
        # The language separates thousands.
        ("Es kostet 1.200 Euro.", "Es kostet 1200 Euro.", "de", ()),
        ("Es kostet 1.200.000,5 Euro.", "Es kostet 1200000,5 Euro und 1,200 Euro.", "de", ("1,200 Euro",)),
        ("It takes 1.200 s.", "It takes 1200 s.", "en", ("1200 s",)),
    ],
)
def test_numbers_and_names_that_the_document_does_not_hold_are_told_as_the_language_writes_them(
    document: str, sentence: str, language: str, missing: tuple[str, ...]
) -> None:
    (checked,) = check_summary(sentence, document, language).sentences
    assert checked.missing == missing


class SaysOfFirstWords:
    """Entails what begins as the premise does; contradicts by length."""

    is_binary = False

    def signature(self) -> str:
        return "first words"

    def judged(self, premises: Sequence[str], claim: str) -> Judged:
        same = [float(premise.split()[0] == claim.split()[0]) for premise in premises]
        return Judged(np.array([same, [len(premise) / 100 for premise in premises]]).T, 1)


def test_a_classifier_tells_what_entails_a_sentence_most_and_what_contradicts_it_most() -> None:
    found = check_summary("All rest.", DOCUMENT, entails=SaysOfFirstWords())
    (checked,) = found.sentences
    assert found.truncated == 1 and checked.entailment == ("All bees fly fast.", 2, 3, 1.0)
    assert checked.contradiction == ("We counted 1,000 bees in Rome.", 0, 1, pytest.approx(0.3))
    (alone,) = check_summary("All rest.", "", entails=SaysOfFirstWords()).sentences
    assert alone.entailment is None and alone.is_supported is False


@pytest.mark.parametrize(
    ("summary", "sentences"),
    [
        ("- Bees fly fast\n- Wasps sting\n", ["Bees fly fast", "Wasps sting"]),
        ("1. **Bees** fly.\n2. Wasps sting.", ["Bees fly.", "Wasps sting."]),
        ("蜜蜂飞。它们休息。", ["蜜蜂飞。", "它们休息。"]),
        ("Bees fly\nfast. They rest\n\nWasps sting", ["Bees fly fast.", "They rest", "Wasps sting"]),
        # Headings of plain text.
        (
            "The bees\n\nBees of Rome\nBees fly fast.\n\nOf wasps\n\nWasps sting.\nThey rest",
            ["Bees fly fast.", "Wasps sting.", "They rest"],
        ),
        (
            "# Findings\n\n- Bees fly\n- Wasps sting\n\nII. More\n\nThey rest.",
            ["Bees fly", "Wasps sting", "They rest."],
        ),
        ("一、蜜蜂\n\n蜜蜂飞。", ["蜜蜂飞。"]),
        (
            HeadedText.of([1, "Findings\n\n", "Bees fly.\n\n", 1, "More\n\n", "Wasps sting."]),
            ["Bees fly.", "Wasps sting."],
        ),
    ],
)
def test_paragraphs_and_items_end_sentences_and_headings_say_nothing(summary: str, sentences: list[str]) -> None:
    assert [each.text for each in check_summary(summary, DOCUMENT).sentences] == sentences


class OfTwoLabels(SaysOfFirstWords):
    is_binary = True


def test_wrong_options_and_the_path_of_a_file_are_named(tmp_path: Path) -> None:
    (path := tmp_path / "a.txt").write_text("Bees fly.")
    wrong: list[tuple[str, str, dict[str, Any], str]] = [
        ("A word.", "A word.", {"language": "xx"}, "`language`"),
        ("A word.", "A word.", {"entails": OfTwoLabels()}, "`entailment`"),
        (str(path), "Bees fly.", {}, "a.txt names a file"),
        ("Bees fly.", str(path), {}, "a.txt names a file"),
    ]
    for summary, document, options, named in wrong:
        with refused(named):
            check_summary(summary, document, **options)
