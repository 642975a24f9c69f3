"""`prepare --divide` and `prepare --select`: what makes pairs of the documents of each split."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, exclude, naming_options, option_group, require

if TYPE_CHECKING:
    from pyramidions.data.pairing import Pairing
    from pyramidions.data.select_sentences import SelectSentences


class PairingOptions(NamedTuple):
    """Options of `prepare` that decide what becomes of a document; None where nothing is given."""

    divide: str | None
    section_types: Path | None
    least_words: int | None
    select: str | None
    select_test: str | None
    budget: int | None

    def check(self, splits: list[str]) -> None:
        """Raise a UserError if options exclude each other or lack each other."""
        exclude({"--divide": self.divide, "--select": self.select})
        of_sections = {"--section-types": self.section_types, "--least-words": self.least_words}
        require("--divide sections", self.divide == "sections", of_sections)
        require("--select", self.select, {"--select-test": self.select_test, "--budget": self.budget})
        if self.select and self.budget is None:
            raise UserError("--select needs --budget, the most tokens of a document.")
        if self.select_test is not None and "test" not in splits:
            raise UserError("--select-test is an option of the test split, which is not given.")
        from pyramidions.extract.methods import ORACLE

        if "test" in splits and ORACLE in (self.select_test, self.select_test or self.select):
            raise UserError(
                "The oracle reads the reference summary, which must not choose what is summarized in the test split: "
                "give --select-test hiporank, lead, textrank or a model."
            )

    def pairings(self, splits: list[str]) -> "dict[str, Pairing]":
        """Return what makes the pairs of each split; none for a split whose documents stay as they are."""
        self.check(splits)
        if self.divide:
            return self._divided(splits)
        if self.select is None:
            return {}
        pairings: dict[str, Pairing] = dict.fromkeys(splits, _selecting(self.select, "select", self.budget or 0))
        if self.select_test is not None:
            pairings["test"] = _selecting(self.select_test, "select_test", self.budget or 0)
        return pairings

    def _divided(self, splits: list[str]) -> "dict[str, Pairing]":
        from pyramidions.data.divide import LEAST_WORDS, Divide, DivideSentences
        from pyramidions.data.section_types import section_types

        divide: Pairing = DivideSentences()
        if self.divide == "sections":
            least = LEAST_WORDS if self.least_words is None else self.least_words
            divide = Divide(section_types(self.section_types), least)
        # Test documents stay whole: the reference must not choose what is summarized.
        return {split: divide for split in splits if split != "test"}


def _selecting(given: str, name: str, budget: int) -> "SelectSentences":
    from pyramidions.data.select_sentences import SelectByOracle, SelectSentences
    from pyramidions.extract import RANKERS
    from pyramidions.extract.concepts import hash_of, read_ranker
    from pyramidions.extract.methods import ORACLE, find_method

    with naming_options(name):
        found = find_method(given, name, ORACLE)
    if found.concepts is not None:
        about = {"method": "concepts", "sha256": hash_of(found.concepts)}
        return SelectSentences(partial(read_ranker, found.concepts), budget, about)
    if found.network is not None:
        from pyramidions.inference.selection_model import fingerprint, make_ranker

        about = {"method": "model", "sha256": fingerprint(found.network)}
        return SelectSentences(partial(make_ranker, found.network), budget, about)
    if found.name == ORACLE:
        return SelectByOracle(budget)
    return SelectSentences(partial(RANKERS.build, found.name, {}), budget, {"method": found.name})


#: Gives a command these options together, as `pairing`.
pairing_options = option_group(
    click.option(
        "--divide",
        type=click.Choice(["sections", "sentences"]),
        help="Train on sections with their parts of the summary, or on single sentences with those of the summary that "
        "they are rewritten to.",
    ),
    click.option(
        "--section-types",
        type=PATH,
        help="Table of section types and their keywords, for --divide.  [default: that of scientific papers]",
    ),
    click.option(
        "--least-words",
        type=click.IntRange(1),
        help="Fewest words of a section and of its part of the summary, for --divide.  [default: 20]",
    ),
    click.option(
        "--select",
        metavar="METHOD",
        help="Replace documents by sentences that hiporank, lead, textrank, oracle, or a trained extractor selects; "
        "needs --budget.",
    ),
    click.option("--select-test", metavar="METHOD", help="Select the sentences of test documents by another method."),
    click.option(
        "--budget",
        type=click.IntRange(2),
        metavar="TOKENS",
        help="Most tokens of the selected sentences and their end.",
    ),
    name="pairing",
    kind=PairingOptions,
)
