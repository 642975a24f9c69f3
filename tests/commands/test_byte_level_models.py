"""A tokenizer as BART has it, in `prepare`, in what is read and in explanations; test_lives.py trains with it."""

import json
import lzma
from itertools import islice
from pathlib import Path

import pytest
from conftest import SAMPLE
from explanations import only_document, texts_of
from fairseq.data import data_utils
from folders import contents
from invoking import fail, succeed
from kinds_of_summarizers import model_of
from small_tokenizers import bart_bytes

from pyramidions.data.folder import DataFolder
from pyramidions.inference import Summarizer, export_model
from pyramidions.text.normalization import one_line
from pyramidions.text.tokenizer import BOS, EOS

DECODING = {"beam": 2, "min_len": 4, "max_len": 12}
TEXT = "It’s a naïve test 😀 of bees.\n\nA </s> and <s>, and 漢字: 漢字."


def lines(text: str) -> list[str]:
    """Return the lines; a token of its own may be the space before the first word of one."""
    return [line.strip() for line in text.split("\n")]


@pytest.fixture(scope="module")
def summarizer() -> Summarizer:
    return Summarizer(model_of("pooled", byte_level=True), "cpu")


def test_a_folder_holds_the_tokenizer_and_texts_without_prefix_until_it_is_another(tmp_path: Path) -> None:
    tokenizer, other = tmp_path / "bart.json", tmp_path / "other.json"
    tokenizer.write_bytes(bart_bytes())
    other.write_text(json.dumps({**json.loads(bart_bytes()), "post_processor": None}))
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        (tmp_path / "test.jsonl").write_text("".join(islice(papers, 1)))
    command = ["prepare", "--test", tmp_path / "test.jsonl", "--out", tmp_path / "data", "--workers", 1, "--tokenizer"]
    succeed(*command, tokenizer)
    folder = DataFolder(tmp_path / "data")
    assert folder.tokenizer_path.name == "tokenizer.json" and folder.tokenizer_path.read_bytes() == bart_bytes()
    assert not folder.sentencepiece_path.exists()
    assert {"tokenizers", "splitter"} <= folder.manifest["versions"].keys()
    assert "sentencepiece" not in folder.manifest["versions"]
    ids = data_utils.load_indexed_dataset(folder.indexed("test", "source"), None, "mmap")[0].tolist()
    assert BOS not in ids and ids[-1] == EOS
    paper = json.loads((tmp_path / "test.jsonl").read_text())
    assert folder.tokenizer().decode(ids) == one_line(paper["article"])
    before = contents(folder.path)
    succeed(*command, tokenizer)
    assert "give --overwrite" in fail(*command, other)
    assert contents(folder.path) == before


def test_the_prefix_counts_in_the_limit_and_is_read(summarizer: Summarizer) -> None:
    longest = summarizer.model.max_source_positions
    text = "bees fly " * longest
    head = summarizer.reader.head(text, "a text")
    ids = summarizer._ids(head).tolist()
    assert len(ids) == head.read == longest and (ids[0], ids[-1]) == (BOS, EOS)
    assert head.whole == 2 + len(summarizer.model.tokenizer.encode(text))
    pieces = list(summarizer.reader.pieces(text, "a text"))
    assert all(piece.read == piece.whole <= longest for piece in pieces) and len(pieces) > 2
    found = [i for piece in pieces for i in summarizer.model.tokenizer.ids_of(piece.tokens)]
    assert found == summarizer.model.tokenizer.encode(text)


def test_an_export_writes_the_same_and_an_explanation_and_its_page_show_the_text_of_the_document(
    summarizer: Summarizer, tmp_path: Path
) -> None:
    for _ in range(2):  # the second replaces the first
        export_model(summarizer.model, tmp_path / "export", "# A model\n")
    assert (tmp_path / "export" / "tokenizer.json").read_bytes() == bart_bytes()
    assert not (tmp_path / "export" / "sentencepiece.model").exists()
    exported = Summarizer.from_pretrained(tmp_path / "export", "cpu")
    explained = summarizer.explain(TEXT, **DECODING)
    assert [explained.summary] == exported.summarize([TEXT], **DECODING) == summarizer.summarize([TEXT], **DECODING)
    assert lines("".join(explained.document)) == TEXT.split("\n")
    tokens = summarizer.model.tokenizer.encode(TEXT)
    assert len(explained.document) == explained.summary.read_tokens == len(tokens) + 2
    assert explained.document[0] == explained.document[-1] == ""
    assert explained.reached is not None and len(explained.reached) == len(explained.document)
    assert len(explained.written) == explained.summary.tokens
    assert " ".join("".join(explained.written).split()) == explained.summary.text
    paper, target = tmp_path / "paper.txt", tmp_path / "page.html"
    paper.write_text(TEXT)
    flags = ("--explain", target, "--beam", 2, "--min-len", 4, "--max-len", 12)
    succeed("summarize", tmp_path / "export", paper, *flags)
    (shown,) = texts_of(only_document(target.read_text()))
    assert lines(shown) == TEXT.split("\n")
