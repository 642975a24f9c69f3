"""`prepare --divide sections`: sections and their parts of the summary."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from folders import contents
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data import encode as encode_module
from pyramidions.data.divide import Divide, assign
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


@for_each(("least", "kept"), [(7, ["x/1", "x/2", "x/3"]), (8, ["x/1", "x/2"]), (11, [])])
def test_pairs_with_few_words_are_left_out(least: int, kept: list[str]) -> None:
    found = Divide(least_words=least)(Document("x", PAPER, SUMMARY))
    assert [each.id for each in found.documents] == kept and not found.is_whole


def test_the_table_decides_which_sections_are_pairs() -> None:
    types = section_types()._replace(train=("methods",))
    assert [each.id for each in Divide(types, 1)(Document("x", PAPER, SUMMARY)).documents] == ["x/2"]


@for_each(
    "text",
    [
        "No headings. None.",
        "# Methods\n\n# Results\n",
        "# Thanks\n\nThank you.\n\n# Honey\n\nMuch.",
        "# Methods",
        "One.",
    ],
)
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


def test_the_reference_of_a_test_document_changes_nothing_in_its_source(
    tmp_path: Path, papers: dict[str, Corpus], write_lines: Callable[..., str]
) -> None:
    first = made(tmp_path / "first", papers)
    lines = [json.loads(line) for line in Path(papers["test"].name).read_text().splitlines()]
    other = write_lines("other.jsonl", [line | {"abstract": "Something else."} for line in lines])
    second = made(tmp_path / "second", papers | {"test": Corpus(other)})
    for ending in ("bin", "idx"):
        name = f"test.source.{ending}"
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()


def test_any_number_of_workers_and_interruptions_make_the_same_bytes(
    tmp_path: Path, papers: dict[str, Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_module, "CHUNK", 3)
    folder = made(tmp_path / "a" / "data", papers)
    assert contents(made(tmp_path / "b" / "data", papers, workers=2).path) == contents(folder.path)
    add = encode_module._SplitFiles.add
    for at in (5, 13):
        numbers = count()

        def add_or_stop(*args: object, numbers: "count[int]" = numbers, at: int = at) -> None:
            if next(numbers) == at:
                raise KeyboardInterrupt
            add(*args)  # type: ignore[arg-type]

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(encode_module._SplitFiles, "add", add_or_stop)
            made(tmp_path / "c" / "data", papers)
    assert contents(made(tmp_path / "c" / "data", papers).path) == contents(folder.path)


@pytest.mark.parametrize("places", [[1, 5], [11]], ids=["amid", "at the end"])
def test_documents_without_enough_words_are_counted(
    tmp_path: Path,
    papers: dict[str, Corpus],
    places: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(papers["train"].name)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for place in places:
        records[place]["abstract"] = "Bees dance."
    records[3]["article"] = PAPER
    path.write_text("\n".join(map(json.dumps, records)))
    folder = made(tmp_path / "data", papers)
    number = len(places)
    assert folder.manifest["splits"]["train"]["documents"] == (12 - number) * 3
    assert folder.manifest["splits"]["train"]["made_of"] == {"documents": 12, "whole": 0, "left_out": number}
    assert (
        f"train: {number} of 12 documents {'has' if number == 1 else 'have'} no pair with at least 5 words in the "
        f"section and in its part of the summary, and {'is' if number == 1 else 'are'} left out"
    ) in capsys.readouterr().err


def test_another_table_is_another_folder(tmp_path: Path, papers: dict[str, Corpus]) -> None:
    made(tmp_path / "data", papers)
    assert not prepare(tmp_path / "data", papers, SETTINGS, pairings={"train": Divide(least_words=5)})
    with pytest.raises(UserError, match="holds other documents or settings"):
        prepare(tmp_path / "data", papers, SETTINGS, pairings={"train": Divide(least_words=6)})


def test_a_split_without_any_pair_is_one_sentence(tmp_path: Path, papers: dict[str, Corpus]) -> None:
    path = Path(papers["train"].name)
    path.write_text(path.read_text().splitlines()[0])
    with pytest.raises(UserError, match="The split 'train' must hold at least one pair of text and summary, but all"):
        prepare(tmp_path / "data", papers, Settings(vocab_size=45), pairings={"train": Divide(least_words=50)})
    assert not (tmp_path / "data").exists()


def test_fewer_than_one_word_is_refused() -> None:
    with pytest.raises(UserError, match="`least_words` must be at least 1, but is 0"):
        Divide(least_words=0)


def test_workers_send_back_a_partial_summary_but_no_document(tmp_path: Path, papers: dict[str, Corpus]) -> None:
    told = made(tmp_path / "data", papers).tokenizer(), False, Divide(least_words=5), None
    document = Document("x", PAPER, SUMMARY)
    (encoded,) = encode_module._encode_chunk(*told, [document])
    assert [pair.name and pair.name[0] for pair in encoded.pairs] == ["x/1", "x/2", "x/3"]
    whole = Document("y", "No headings.", SUMMARY)
    (encoded,) = encode_module._encode_chunk(*told, [whole])
    assert [pair.name for pair in encoded.pairs] == [None] and encoded.is_whole
