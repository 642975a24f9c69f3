"""Documents longer than a model reads: truncated, in pieces, merged, by section, by selected sentences."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from explanations import page_data, texts_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from invoking import succeed
from small_exports import extractor as exported

from pyramidions.base.errors import UserError
from pyramidions.base.reading import LONG, Long
from pyramidions.data.select_sentences import select_tokens
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.extract import HipoRank, Lead, Ranker
from pyramidions.extract.fitness import as_extracted
from pyramidions.inference import Extractor, LearnedRanker, SavedModel, Summarizer, Summary, export_model
from pyramidions.inference.long_documents import LongReader, joined, merge
from pyramidions.inference.reader import Reader, TokenizedText
from pyramidions.inference.selection_model import Selection, selecting, selection
from pyramidions.inference.summary import Coverage
from pyramidions.models import PyramidionConfig, build
from pyramidions.pretrained.origin import Origin
from pyramidions.text.outline import Outline, outline
from pyramidions.text.tokenizer import Tokenizer

SECTIONS = {
    "Introduction": "Bees dance at night. Nobody has seen it. We wanted to see it.",
    "Related work": "Others watched bees by day.",
    "Methods": "We watched two hives with red lamps. The lamps were weak. The year was long.",
    "Results": "At night bees danced as often as by day. Rain made no difference. Wind made none.",
    "Thanks": "We thank the keeper.",
    "Conclusions": "So bees dance by night.",
}
PAPER = "\n\n".join(f"# {heading}\n\n{text}" for heading, text in SECTIONS.items())
WRITTEN = ["Introduction", "Methods", "Results", "Conclusions"]
FLAT = " ".join(SECTIONS.values())
SHORT = {"beam": 1, "min_len": 1, "max_len": 8}
MOST = 24  # tokens that the model reads
ANY = st.characters(exclude_categories=[])


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([*SECTIONS, *SECTIONS.values()], Settings(70))


@pytest.fixture(scope="module")
def summarizer(tokenizer: Tokenizer) -> Summarizer:
    """Return a tiny model that was never trained."""
    torch.manual_seed(0)
    shape = {"embed_dim": 8, "ffn_embed_dim": 8, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    config = PyramidionConfig(**shape, decoding_min_length=4, decoding_max_length=16)
    model = build(config, tokenizer.vocab_size).eval()
    return Summarizer(SavedModel(model, config, tokenizer, MOST, 32), "cpu")


@pytest.fixture(scope="module")
def model(summarizer: Summarizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "model"
    export_model(summarizer.model, folder, "# A model\n")
    return folder


@pytest.fixture(scope="module")
def extractor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(tmp_path_factory.mktemp("extractor") / "model", 256)


class First(Ranker):
    """Selects the first sentences alone."""

    def __init__(self, number: int = 1) -> None:
        self.number = number

    def rank(self, outline: Outline) -> np.ndarray:
        places = np.arange(len(outline.sentences))
        return np.where(places < self.number, -places.astype(float), -np.inf)


class Repeat:
    """Writes the first words of what it reads as its summary."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.read: list[str] = []

    def __call__(self, documents: list[TokenizedText]) -> list[Summary]:
        texts = ["".join(document.tokens).strip() for document in documents]
        self.read += texts
        return [
            Summary(" ".join(text.split()[: self.words]), -1.0, 3, document.whole, len(document.tokens) + 1)
            for text, document in zip(texts, documents, strict=True)
        ]


def texts(reader: LongReader, text: str) -> list[str]:
    return ["".join(part.tokenized.tokens).strip() for part in reader.parts(text, "a text")]


def test_sections_of_the_types_to_write_are_parts_and_the_others_are_counted(tokenizer: Tokenizer) -> None:
    reader = Reader(tokenizer, 999)
    parts = list(LongReader(reader, "sections").parts(PAPER, "a paper"))
    assert [part.coverage.heading for part in parts] == WRITTEN
    assert [part.text for part in parts] == [SECTIONS[heading] for heading in WRITTEN]
    assert texts(LongReader(reader, "sections"), PAPER) == [SECTIONS[heading] for heading in WRITTEN]
    left_out = sum(len(tokenizer.encode(SECTIONS[heading])) for heading in ("Related work", "Thanks"))
    titles = len(tokenizer.encode(" ".join(f"# {heading}" for heading in SECTIONS)))
    assert [part.coverage.left_out for part in parts] == [left_out + titles, 0, 0, 0]
    assert {part.tokenized.share for part in parts} == {4}
    # Those longer than the model reads are truncated, and a short document is read by section, too.
    parts = list(LongReader(Reader(tokenizer, MOST), "sections").parts(PAPER, "a paper"))
    assert max(len(part.tokenized.tokens) for part in parts) == MOST - 1
    wholes = [len(tokenizer.encode(SECTIONS[heading])) + 1 for heading in WRITTEN]
    assert [part.tokenized.whole for part in parts] == wholes
    parts = list(LongReader(reader, "sections").parts("# Methods\n\nA.\n\n# Results\n\nB.", "a text"))
    assert [part.coverage.heading for part in parts] == ["Methods", "Results"]


def test_a_table_of_ones_own_decides_which_sections_are_written(tokenizer: Tokenizer, tmp_path: Path) -> None:
    table = tmp_path / "types.json"
    table.write_text('{"types": {"a": ["thanks"], "b": ["methods"]}, "train": ["b"], "write": ["a"]}')
    assert texts(LongReader(Reader(tokenizer, 999), "sections", table), PAPER) == [SECTIONS["Thanks"]]


@pytest.mark.parametrize("text", [FLAT, "# Methods\n\n# Results", "# Thanks\n\nWe thank you.", "One."])
def test_without_sections_the_text_is_read_from_its_beginning_and_this_is_told(text: str, tokenizer: Tokenizer) -> None:
    (part,) = LongReader(Reader(tokenizer, MOST), "sections").parts(text, "a text")
    assert part.coverage.heading is None and part.tokenized.share == 1
    assert part.coverage.note == "no section of a type in the table: the text was read from its beginning"
    assert part.tokenized == Reader(tokenizer, MOST).head(text, "a text")


@pytest.mark.parametrize("most", [40, 100])
def test_selected_sentences_are_the_best_that_fit_in_reading_order(most: int, tokenizer: Tokenizer) -> None:
    found = outline(PAPER)
    (part,) = LongReader(Reader(tokenizer, most), "extract").parts(PAPER, "a paper")
    number, of = part.coverage.sentences
    assert of == len(found.sentences) == 12 and 1 <= number < 12
    selected = part.text.split("\n")
    positions = [[unit.text for unit in found.sentences].index(text) for text in selected]
    assert sorted(positions) == positions
    best = int(HipoRank().rank(found).argmax())
    assert found.sentences[best].text in selected
    assert len(part.tokenized.tokens) < most
    assert part.tokenized.whole == len(tokenizer.encode(PAPER)) + 1
    # What a model reads whole is not selected from.
    (part,) = LongReader(Reader(tokenizer, 999), "extract").parts(PAPER, "a paper")
    assert part.coverage.sentences is None and part.text is None


@pytest.mark.parametrize("long", ["extract", "rewrite"])
def test_where_no_sentence_is_found_the_text_is_read_from_its_beginning(tokenizer: Tokenizer, long: Long) -> None:
    most = 999 if long == "rewrite" else MOST
    beginning = "the text was read from its beginning"
    for text, chosen, note in (
        ("# Methods\n\n# Results\n", None, "no sentence"),
        (PAPER, Selection("none", First(0)), "no sentence was selected"),
    ):
        reader = Reader(tokenizer, most if chosen else 4)
        select = None if chosen is None else lambda _, chosen=chosen: chosen
        (part,) = LongReader(reader, long, select=select).parts(text, "a text")
        assert part.coverage.note == f"{note}: {beginning}"


def test_a_selection_of_a_meeting_says_who_speaks(tokenizer: Tokenizer) -> None:
    said = "we went to the sea and danced at night with all of them"
    meeting = f"Ann: First {said}.\nBob: Okay.\nBob: Then {said}.\nAnn: Okay.\nAnn: At last {said}.\n"
    most = len(tokenizer.encode(meeting)) - 4
    (part,) = LongReader(Reader(tokenizer, most), "extract", select=selecting("lead")).parts(meeting, "x")
    assert (part.text or "").split("\n")[:2] == [f"Ann: First {said}.", f"Bob: Then {said}."]


def test_a_pretrained_model_reads_what_the_method_that_suits_a_document_selects(summarizer: Summarizer) -> None:
    meeting = "Ann: We went to the sea and danced at night.\nBob: They saw it by day.\n" * 9
    pretrained = Summarizer(replace(summarizer.model, origin=Origin("facebook/bart-large-cnn", "bart")))
    for model, select, methods in (
        (pretrained, None, ["meetings", "hiporank"]),
        (pretrained, "lead", ["lead", "lead"]),
        (summarizer, None, ["hiporank", "hiporank"]),
        (summarizer, Path("auto"), ["meetings", "hiporank"]),
    ):
        found = model.summarize([meeting, PAPER], **SHORT, long="extract", select=select)
        assert [each.coverage.selected_by for each in found] == methods


def test_a_sentence_longer_than_the_model_reads_is_truncated(tokenizer: Tokenizer) -> None:
    (part,) = LongReader(Reader(tokenizer, 8), "extract").parts("We " + "danced at night " * 9 + ".", "a text")
    assert part.coverage.sentences == (1, 1) and len(part.tokenized.tokens) == 7


def selected_by(ranker: Ranker, tokenizer: Tokenizer) -> list[str]:
    found = outline(PAPER)
    return [found.sentences[place].text for place in select_tokens(found, ranker.rank(found), tokenizer, MOST)]


@pytest.mark.parametrize("select", [None, "lead", "biomedical", "trained"])
def test_a_method_or_a_trained_extractor_selects_the_sentences(
    select: str | None, summarizer: Summarizer, extractor: Path, tokenizer: Tokenizer
) -> None:
    select = str(extractor) if select == "trained" else select
    ranker = {None: HipoRank(), "lead": Lead()}.get(select) or selection(select or "", "cpu").ranker
    if select == str(extractor):
        assert isinstance(ranker, LearnedRanker)
    expected = selected_by(ranker, tokenizer)
    (found,) = summarizer.summarize([PAPER], **SHORT, long="extract", select=select)
    assert found.text == summarizer.summarize(["\n".join(expected)], **SHORT)[0].text
    assert found.coverage.selected_by == (select or "hiporank")
    assert found.coverage.sentences == (len(expected), 12)


def test_each_selected_sentence_is_rewritten_on_its_own(tokenizer: Tokenizer, extractor: Path) -> None:
    # Citations and speakers count as in an extract.
    cited = PAPER.replace("long.", "long [1, 2].")
    for text, method in itertools.product((cited, "We watched two hives."), (extractor, "biomedical", "hiporank")):
        select = selecting(method, "cpu" if method == extractor else None)
        parts = list(LongReader(Reader(tokenizer, 999), "rewrite", select=select).parts(text, "a paper"))
        found = Extractor(method).extract(text)
        assert [as_extracted(part.text or "") for part in parts] == [sentence.text for sentence in found.sentences]
        first, *others = [part.coverage for part in parts]
        assert first.sentences == (len(parts), len(found.scores)) and first.selected_by == str(method)
        assert set(others) <= {Coverage()} and all(part.tokenized.sentence for part in parts)
    # What is left out is counted.
    reader = Reader(tokenizer, 999)
    (part,) = LongReader(reader, "rewrite", select=lambda _: Selection("first", First())).parts(PAPER, "a paper")
    (whole,) = LongReader(reader, "truncate").parts(PAPER, "a paper")
    assert part.coverage.left_out == whole.tokenized.whole - part.tokenized.whole


def test_merging_summarizes_the_summaries_until_they_fit(tokenizer: Tokenizer) -> None:
    reader = Reader(tokenizer, 20)
    write = Repeat(2)
    pieces = write([part.tokenized for part in LongReader(reader, "merge").parts(FLAT, "a text")])
    short = write([reader.head("One.", "short")])
    assert len(pieces) > 8
    write.read.clear()
    (merged,), (alone,) = merge([pieces, short], reader, write)
    assert alone == short[0]
    # More than one round: what was read last are two words of each piece of the round before.
    assert len(write.read) > 3 and merged.text == " ".join(write.read[-1].split()[:2])
    assert merged.pieces == tuple(pieces) and merged.coverage.note is None
    assert merged.document_tokens == sum(piece.document_tokens for piece in pieces)
    assert write.read[0].startswith(" ".join(piece.text for piece in pieces)[:10])


def test_merging_ends_where_summaries_are_as_long_as_the_text(tokenizer: Tokenizer) -> None:
    reader = Reader(tokenizer, 12)
    write = Repeat(100)
    pieces = write([part.tokenized for part in LongReader(reader, "merge").parts(FLAT, "a text")])
    ((merged,),) = merge([pieces], reader, write)
    assert merged.coverage.note == ("the summaries of its pieces were truncated, because they are as long as the text")
    assert merged.text.startswith(pieces[0].text)
    # Pieces without a word, and a single summary.
    ((merged,),) = merge([[Summary("", -1.0, 1, 9, 9)] * 3], reader, Repeat(1))
    assert merged.text == "" and merged.document_tokens == 27
    assert joined([pieces[0]]) is pieces[0]


def test_the_ways_are_the_same_in_python(summarizer: Summarizer) -> None:
    documents = [PAPER, "Bees dance.", FLAT]
    found = {long: summarizer.summarize(documents, **SHORT, long=long) for long in LONG}
    assert found["truncate"] == summarizer.summarize(documents, **SHORT)
    assert [len(summary.pieces) for summary in found["sections"]] == [4, 0, 0]
    assert [piece.coverage.heading for piece in found["sections"][0].pieces] == WRITTEN
    assert found["sections"][0].text == " ".join(piece.text for piece in found["sections"][0].pieces)
    assert found["sections"][1].coverage.note is not None
    # Eight tokens for four sections are two for each, without the end.
    assert max(piece.tokens for piece in found["sections"][0].pieces) <= 3
    assert len(found["chunk"][0].pieces) == len(found["merge"][0].pieces) > 3
    assert found["merge"][0].tokens <= 9 < found["chunk"][0].tokens
    assert found["extract"][0].coverage.sentences[1] == 12 and found["extract"][1].coverage.sentences is None
    assert found["extract"][0].read_tokens <= MOST < found["extract"][0].document_tokens
    whole = len(summarizer.model.tokenizer.encode(PAPER))
    assert abs(found["sections"][0].document_tokens - whole) <= 5  # the ends of sections
    for long in LONG:
        assert [summarizer.summarize([text], **SHORT, long=long)[0].text for text in documents] == [
            summary.text for summary in found[long]
        ]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.md").write_text(PAPER)
    page = "".join(f"<h2>{heading}</h2><p>{text}</p>" for heading, text in SECTIONS.items())
    (folder / "b.html").write_text(page)
    record = {"section_names": list(SECTIONS), "sections": [[text] for text in SECTIONS.values()], "text": FLAT}
    (folder / "c.jsonl").write_text(json.dumps(record) + "\n" + json.dumps({"text": FLAT}) + "\n")
    return folder


OPTIONS = ("--beam", 1, "--min-len", 1, "--max-len", 8, "--precision", "float32")


def rows(*arguments: object) -> Iterator[dict[str, object]]:
    done = succeed("summarize", *arguments, *OPTIONS, "--json")
    return map(json.loads, done.stdout.splitlines())


#: What the command says of a document, beside its name.
ABOUT = {
    "sections": f"by section: {', '.join(WRITTEN)}; ",
    "extract": "of 12 sentences, selected by hiporank, were read",
    "chunk": " pieces",
    "merge": "the summary of the summaries of ",
}


@pytest.mark.parametrize("long", ABOUT)
def test_the_command_tells_what_the_summary_does(long: Long, model: Path, files: Path, summarizer: Summarizer) -> None:
    (row,) = rows(model, files / "a.md", "--long", long)
    (expected,) = summarizer.summarize([PAPER], **SHORT, long=long)
    about = expected.coverage
    assert (row["long"], row["summary"], row["pieces"]) == (long, expected.text, max(1, len(expected.pieces)))
    assert (row.get("selected_sentences"), row.get("sentences")) == (about.sentences or (None, None))
    assert (row.get("selected_by"), row.get("note")) == (about.selected_by, about.note)
    assert (
        ABOUT[long] in succeed("summarize", model, files / "a.md", *OPTIONS, "--long", long).stdout.partition("\n")[0]
    )


def test_the_command_finds_sections_in_each_format_and_counts_what_is_left_out(
    model: Path, files: Path, tokenizer: Tokenizer
) -> None:
    *sectioned, flat = rows(model, files, "--long", "sections")
    assert [[each["heading"] for each in row["sections"]] for row in sectioned] == [WRITTEN] * 3
    assert "sections" not in flat and flat["pieces"] == 1 and flat["note"]
    read = re.sub("(?m)^#+ ", "", PAPER)
    left_out = len(tokenizer.encode(read)) - sum(len(tokenizer.encode(SECTIONS[heading])) for heading in WRITTEN)
    said = succeed("summarize", model, files / "a.md", *OPTIONS, "--long", "sections").stdout
    assert f"; {left_out} of {sectioned[0]['document_tokens']} tokens" in said


def test_the_command_selects_by_another_method_whether_it_explains_or_not(model: Path, files: Path) -> None:
    options = (*OPTIONS, "--long", "extract", "--select", "lead", "--device", "cpu")
    said = succeed("summarize", model, files / "a.md", *options).stdout
    assert "selected by lead" in said
    assert said == succeed("summarize", model, files / "a.md", *options, "--explain", files / "page.html").stdout


@pytest.mark.parametrize("long", ["sections", "extract", "rewrite"])
def test_sections_and_selections_are_explained(model: Path, files: Path, long: str, summarizer: Summarizer) -> None:
    page = files / "page.html"
    done = succeed("summarize", model, files / "a.md", *OPTIONS, "--long", long, "--explain", page, "--json")
    row = json.loads(done.stdout)
    assert row["summary"] == next(rows(model, files / "a.md", "--long", long))["summary"]
    assert row["pieces"] == {"sections": 4, "extract": 1, "rewrite": 12}[long]
    (document,) = page_data(page.read_text(encoding="utf-8"))["documents"]
    shown = [text.split() for text in texts_of(document)]
    parts = LongReader(summarizer.reader, long).parts(PAPER, "a paper")
    assert shown == ["".join(part.tokenized.tokens).split() for part in parts]


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(
        st.sampled_from(["# Methods", "# Results", "##", "", "Bees.", "…", "\u200b", "a " * 40]) | st.text(ANY)
    )
)
@example(text=["# Methods", "…"])
def test_any_text_gets_a_summary_or_one_sentence(text: list[str], summarizer: Summarizer) -> None:
    for long in LONG:
        try:
            (summary,) = summarizer.summarize(["\n\n".join(text)], beam=1, min_len=1, max_len=3, long=long)
        except UserError as error:
            assert "must hold text" in str(error)
        else:
            assert "\n" not in summary.text and summary.read_tokens <= summary.document_tokens
