"""A tokenizer as BART has it, on its way from `prepare` to a summary and its explanation."""

import json
import lzma
from itertools import islice
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from conftest import SAMPLE
from explanations import only_document, texts_of
from fairseq.data import data_utils
from fairseq_commands import train
from folders import contents
from small_tokenizers import bart_bytes

from pyramidions.cli import main
from pyramidions.data.folder import DataFolder
from pyramidions.inference import Long, Summarizer, load_model
from pyramidions.text.normalization import one_line
from pyramidions.text.tokenizer import BOS, EOS

DECODING = {"beam": 2, "min_len": 4, "max_len": 12}
TEXT = "It’s a naïve test 😀 of bees.\n\nA line with </s> and <s>, and 漢字 twice: 漢字."


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def lines(text: str) -> list[str]:
    """Return the lines; a token of its own may be the space before the first word of one."""
    return [line.strip() for line in text.split("\n")]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Return a few papers, prepared with byte-level BPE."""
    root = tmp_path_factory.mktemp("byte-level")
    (root / "bart.json").write_bytes(bart_bytes())
    for split, count in (("train", 4), ("test", 1)):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers:
            (root / f"{split}.jsonl").write_text("".join(islice(papers, count)))
    made = call("prepare", root, "--tokenizer", root / "bart.json", "--out", root / "data", "--workers", 1)
    assert made.exit_code == 0, made.output
    return DataFolder(root / "data")


@pytest.fixture(scope="module")
def trained(prepared: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny model that read and wrote with it."""
    save_dir = tmp_path_factory.mktemp("trained")
    train(prepared, save_dir, "--max-update", "2", "--disable-validation", "--no-epoch-checkpoints")
    return save_dir / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def summarizer(trained: Path) -> Summarizer:
    return Summarizer(load_model(trained), "cpu")


def test_a_folder_holds_the_tokenizer_as_it_is_and_texts_without_prefix(prepared: DataFolder) -> None:
    assert prepared.tokenizer_path.name == "tokenizer.json"
    assert prepared.tokenizer_path.read_bytes() == bart_bytes()
    assert not prepared.sentencepiece_path.exists()
    assert {"tokenizers", "splitter"} <= prepared.manifest["versions"].keys()
    assert "sentencepiece" not in prepared.manifest["versions"]
    ids = data_utils.load_indexed_dataset(prepared.indexed("test", "source"), None, "mmap")[0].tolist()
    assert BOS not in ids and ids[-1] == EOS
    paper = json.loads((prepared.path.parent / "test.jsonl").read_text())
    assert prepared.tokenizer().decode(ids) == one_line(paper["article"])


def test_a_folder_is_kept_until_its_tokenizer_is_another(prepared: DataFolder, tmp_path: Path) -> None:
    about = json.loads(bart_bytes())
    (tmp_path / "other.json").write_text(json.dumps({**about, "post_processor": None}))
    command = ["prepare", prepared.path.parent, "--out", prepared.path, "--workers", "1", "--tokenizer"]
    before = contents(prepared.path)
    assert call(*command, prepared.path.parent / "bart.json").exit_code == 0
    other = call(*command, tmp_path / "other.json")
    assert other.exit_code == 1 and "give --overwrite" in other.output
    assert contents(prepared.path) == before
    labels = call("prepare", prepared.path.parent, "--labels", "--tokenizer", prepared.tokenizer_path, "--out", "x")
    assert labels.exit_code == 1 and "<sentence>" in labels.output


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


@pytest.mark.parametrize("long", ["chunk", "merge", "sections", "extract"])
def test_every_way_to_read_a_long_document_works(summarizer: Summarizer, long: Long) -> None:
    text = "# Introduction\n\n" + "Bees fly – fast 😀. They do not swim. " * 60
    (summary,) = summarizer.summarize([text], long=long, **DECODING)
    limit = summarizer.model.max_source_positions
    assert summary.document_tokens > limit
    for part in summary.pieces or [summary]:
        assert part.read_tokens <= limit


def test_a_checkpoint_and_an_export_carry_the_tokenizer_and_write_the_same(
    trained: Path, summarizer: Summarizer, tmp_path: Path
) -> None:
    assert torch.load(trained, weights_only=True)["task_state"]["tokenizer"] == bart_bytes()
    # The second replaces the first.
    for _ in range(2):
        assert call("export", trained, tmp_path / "export").exit_code == 0
    assert (tmp_path / "export" / "tokenizer.json").read_bytes() == bart_bytes()
    assert not (tmp_path / "export" / "sentencepiece.model").exists()
    exported = Summarizer.from_pretrained(tmp_path / "export", "cpu")
    assert exported.summarize([TEXT], **DECODING) == summarizer.summarize([TEXT], **DECODING)


def test_an_explanation_and_its_page_show_the_text_of_the_document(
    trained: Path, summarizer: Summarizer, tmp_path: Path
) -> None:
    explained = summarizer.explain(TEXT, **DECODING)
    assert explained.summary == summarizer.summarize([TEXT], **DECODING)[0]
    assert lines("".join(explained.document)) == TEXT.split("\n")
    tokens = summarizer.model.tokenizer.encode(TEXT)
    assert len(explained.document) == explained.summary.read_tokens == len(tokens) + 2
    assert explained.document[0] == explained.document[-1] == ""
    assert explained.reached is not None and len(explained.reached) == len(explained.document)
    assert len(explained.written) == explained.summary.tokens
    assert " ".join("".join(explained.written).split()) == explained.summary.text
    paper, target = tmp_path / "paper.txt", tmp_path / "page.html"
    paper.write_text(TEXT)
    done = call("summarize", trained, paper, "--explain", target, "--beam", 2, "--min-len", 4, "--max-len", 12)
    assert done.exit_code == 0, done.output
    (shown,) = texts_of(only_document(target.read_text()))
    assert lines(shown) == TEXT.split("\n")
