"""`prepare --divide`: sections or sentences of a document, and their parts of the summary."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from folders import contents

from pyramidions.base.errors import UserError
from pyramidions.data import encode as encode_module
from pyramidions.data.divide import Divide, DivideSentences, assign
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.section_types import section_types
from pyramidions.data.vocabulary import Settings

PAPER = """# Bees at night

# Introduction

Bees dance. Nobody has watched the dance of bees at night.

# Methods

We watched two hives with red lamps for a year. The lamps were weak.

# Results

At night the bees danced as often as by day. Rain made no difference.

# Thanks

We thank the beekeeper for honey.
"""
SUMMARY = (
    "Rain made no difference to the bees. "  # results
    "The dance of bees has not been watched at night. "  # introduction
    "Two hives were watched for a year with red lamps. "  # methods
    "We thank the beekeeper. "  # a section of no type
    "Xyzzy."  # nowhere
)
SETTINGS = Settings(vocab_size=60)


@pytest.fixture
def papers(write_lines: Callable[..., str]) -> dict[str, Corpus]:
    records = [{"id": f"p{n}", "article": PAPER.replace("two", f"{n}"), "abstract": SUMMARY} for n in range(12)]
    records[3]["article"] = "A text without headings. It is taken as it is."
    names = {split: write_lines(f"{split}.jsonl", records) for split in ("train", "test")}
    return {split: Corpus(name, sections=split == "train") for split, name in names.items()}


def made(path: Path, papers: dict[str, Corpus], workers: int = 1) -> DataFolder:
    prepare(path, papers, SETTINGS, pairings={"train": Divide(least_words=5)}, workers=workers)
    return DataFolder(path)


def test_each_sentence_of_the_summary_goes_to_the_section_that_holds_most_of_it_in_order() -> None:
    found = Divide(least_words=1)(Document("x", PAPER, SUMMARY))
    assert not found.is_whole
    assert [(each.id, each.target) for each in found.documents] == [
        ("x/1", "The dance of bees has not been watched at night."),
        ("x/2", "Two hives were watched for a year with red lamps."),
        ("x/3", "Rain made no difference to the bees."),
    ]
    assert found.documents[0].source == "Bees dance. Nobody has watched the dance of bees at night."


def test_the_first_of_equal_sections_gets_a_sentence_and_none_gets_one_without_a_common_word() -> None:
    assert assign(["a b", "c", "x"], [["a b"], ["b", "a b"], [], ["c c"]]) == [["a b"], [], [], ["c"]]


@pytest.mark.parametrize(
    ("divide", "kept"),
    [
        (Divide(least_words=7), ["x/1", "x/2", "x/3"]),
        (Divide(least_words=8), ["x/1", "x/2"]),
        (Divide(least_words=11), []),
        (Divide(section_types()._replace(train=("methods",)), 1), ["x/2"]),
    ],
)
def test_pairs_with_few_words_or_of_other_types_are_left_out(divide: Divide, kept: list[str]) -> None:
    found = divide(Document("x", PAPER, SUMMARY))
    assert [each.id for each in found.documents] == kept and not found.is_whole


@pytest.mark.parametrize("text", ["One.", "# Methods\n\n# Results\n", "# Thanks\n\nThank you.\n\n# Honey\n\nMuch."])
def test_a_document_without_sections_is_taken_as_it_is(text: str) -> None:
    document = Document("x", text, SUMMARY)
    assert Divide()(document) == ([document], True)


def test_the_folder_holds_pairs_for_training_and_whole_documents_for_test(
    tmp_path: Path, papers: dict[str, Corpus], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(tmp_path / "data", papers)
    assert "train: 1 of 12 documents has no section of a type in the table, and is taken as a whole" in (
        capsys.readouterr().err
    )
    references = folder.references("train")
    assert [reference.id for reference in references[:4]] == ["p0/1", "p0/2", "p0/3", "p1/1"]
    assert len(references) == 11 * 3 + 1 and references[9] == ("p3", SUMMARY)
    sources, targets = (IndexedReader(folder.prefix("train", side)) for side in ("source", "target"))
    tokenizer = folder.tokenizer()
    assert tokenizer.decode(sources[2]) == "At night the bees danced as often as by day. Rain made no difference."
    assert tokenizer.decode(targets[2]) == references[2].summary == "Rain made no difference to the bees."
    about = folder.manifest["splits"]
    assert about["train"]["documents"] == 34 and about["train"]["made_of"] == {
        "documents": 12,
        "whole": 1,
        "left_out": 0,
    }
    assert folder.manifest["settings"]["pairs"]["train"]["kind"] == "sections"
    assert "test" not in folder.manifest["settings"]["pairs"] and "made_of" not in about["test"]
    plain = tmp_path / "plain"
    prepare(plain, papers, SETTINGS)
    for ending in ("source.bin", "source.idx", "target.bin", "references.jsonl"):
        assert (plain / f"test.{ending}").read_bytes() == (folder.path / f"test.{ending}").read_bytes()


def test_any_number_of_workers_and_interruptions_make_the_same_bytes(
    tmp_path: Path,
    papers: dict[str, Corpus],
    monkeypatch: pytest.MonkeyPatch,
    interrupted: Callable[..., AbstractContextManager[None]],
) -> None:
    monkeypatch.setattr(encode_module, "CHUNK", 3)
    folder = made(tmp_path / "a" / "data", papers)
    for at in (5, 13):
        with interrupted(at):
            made(tmp_path / "b" / "data", papers)
    assert contents(made(tmp_path / "b" / "data", papers, workers=2).path) == contents(folder.path)
    assert not prepare(folder.path, papers, SETTINGS, pairings={"train": Divide(least_words=5)})
    with pytest.raises(UserError):
        prepare(folder.path, papers, SETTINGS, pairings={"train": Divide(least_words=6)})


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([1, 5], "2 of 12 documents have no pair with at least 5 words"),
        ([11], "1 of 12 documents has no pair with at least 5 words"),
    ],
    ids=["amid", "at the end"],
)
def test_documents_without_enough_words_are_counted(
    tmp_path: Path, papers: dict[str, Corpus], places: list[int], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(papers["train"].name)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for place in places:
        records[place]["abstract"] = "Bees dance."
    records[3]["article"] = PAPER
    path.write_text("\n".join(map(json.dumps, records)))
    about = made(tmp_path / "data", papers).manifest["splits"]["train"]
    assert about["documents"] == (12 - len(places)) * 3
    assert about["made_of"] == {"documents": 12, "whole": 0, "left_out": len(places)}
    assert f"train: {said}" in capsys.readouterr().err


def test_a_split_without_any_pair_is_refused(tmp_path: Path, papers: dict[str, Corpus]) -> None:
    path = Path(papers["train"].name)
    path.write_text(path.read_text().splitlines()[0])
    with pytest.raises(UserError):
        prepare(tmp_path / "data", papers, Settings(vocab_size=45), pairings={"train": Divide(least_words=50)})
    assert not (tmp_path / "data").exists()
    with pytest.raises(UserError):
        Divide(least_words=0)


# Two sentences begin alike.
TWO_HIVES = "# Bees\n\nBees dance at night. Nobody has seen it.\n\n# Methods\n\nWe watched two hives. Bees dance."


@pytest.mark.parametrize(
    ("summary", "pairs"),
    [
        # Of equal recall, the first; one sentence may serve two.
        ("Two hives. Bees dance.", [("We watched two hives.", "Two hives."), ("Bees dance at night.", "Bees dance.")]),
        (
            "Bees at night. Night bees.",
            [("Bees dance at night.", "Bees at night."), ("Bees dance at night.", "Night bees.")],
        ),
        ("Nobody knows. Xyzzy.", [("Nobody has seen it.", "Nobody knows.")]),
        ("Xyzzy.", []),
    ],
)
def test_each_sentence_of_a_summary_has_the_one_that_holds_most_of_it(
    summary: str, pairs: list[tuple[str, str]]
) -> None:
    found = DivideSentences()(Document("a", TWO_HIVES, summary))
    assert [(each.source, each.target) for each in found.documents] == pairs
    assert [each.id for each in found.documents] == [f"a/{number}" for number in range(1, len(pairs) + 1)]
    assert not found.is_whole


def test_a_document_without_sentences_is_taken_as_it_is() -> None:
    document = Document("a", "# Bees", "Bees dance.")
    assert DivideSentences()(document) == ([document], True)


def test_who_says_it_stands_before_what_is_said_in_a_meeting() -> None:
    meeting = "\n".join(f"{who}: We look at the hive number {n}." for n, who in enumerate(["Ann", "Bob"] * 4))
    ((pair,), _) = DivideSentences()(Document("a", meeting, "Bob looks at hive number 3."))
    assert pair.source == "Bob: We look at the hive number 3."
