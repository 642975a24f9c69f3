"""A tokenizer as BART has it, on its way from `prepare` to a summary and its explanation."""

import json
import lzma
import re
from itertools import islice
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from conftest import SAMPLE
from explanations import only_document, texts_of
from fairseq.data import data_utils
from fairseq_commands import TASK, run, train
from folders import contents
from small_tokenizers import bart_bytes
from tables import for_each

from pyramidions.cli import main
from pyramidions.data.folder import DataFolder
from pyramidions.inference import Summarizer, export_model, load_model
from pyramidions.text.normalization import one_line
from pyramidions.text.tokenizer import BOS, EOS

SHORT = ["--beam", "2", "--min-len", "4", "--max-len-b", "12"]
DECODING = {"beam": 2, "min_len": 4, "max_len": 12}
TEXT = "It’s a naïve test 😀 of bees.\n\nA line with </s> and <s>, and 漢字 twice: 漢字."


def lines(text: str) -> list[str]:
    """Return the lines; a token of its own may be the space before the first word of one."""
    return [line.strip() for line in text.split("\n")]


def papers(split: str, count: int) -> list[dict[str, str]]:
    with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in islice(lines, count)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Return a few papers, prepared with byte-level BPE."""
    root = tmp_path_factory.mktemp("byte-level")
    (root / "bart.json").write_bytes(bart_bytes())
    for split, count in (("train", 8), ("test", 3)):
        (root / f"{split}.jsonl").write_text("".join(f"{json.dumps(paper)}\n" for paper in papers(split, count)))
    arguments = ["prepare", root, "--tokenizer", root / "bart.json", "--out", root / "data", "--workers", 1]
    made = CliRunner().invoke(main, list(map(str, arguments)))
    assert made.exit_code == 0, made.output
    return DataFolder(root / "data")


@pytest.fixture(scope="module")
def trained(prepared: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny model that read and wrote with it."""
    save_dir = tmp_path_factory.mktemp("trained")
    train(prepared, save_dir, "--max-update", "4", "--disable-validation", "--no-epoch-checkpoints")
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
    assert prepared.tokenizer().decode(ids) == one_line(papers("test", 1)[0]["article"])


def test_a_folder_is_kept_until_its_tokenizer_is_another(prepared: DataFolder, tmp_path: Path) -> None:
    about = json.loads(bart_bytes())
    (tmp_path / "other.json").write_text(json.dumps({**about, "post_processor": None}))
    arguments = ["prepare", str(prepared.path.parent), "--out", str(prepared.path), "--workers", "1", "--tokenizer"]
    before = contents(prepared.path)
    again = CliRunner().invoke(main, [*arguments, str(prepared.path.parent / "bart.json")])
    assert again.exit_code == 0, again.output
    other = CliRunner().invoke(main, [*arguments, str(tmp_path / "other.json")])
    assert other.exit_code == 1 and "holds other documents or settings; give --overwrite" in other.output
    assert contents(prepared.path) == before


def test_a_checkpoint_carries_the_tokenizer(trained: Path) -> None:
    state = torch.load(trained, weights_only=True)["task_state"]
    assert state["tokenizer"] == bart_bytes()


def test_generate_interactive_and_the_summarizer_write_the_same(
    prepared: DataFolder, trained: Path, summarizer: Summarizer, tmp_path: Path
) -> None:
    texts = [" ".join(paper["article"].split()) for paper in papers("test", 3)]
    raw = tmp_path / "raw.txt"
    raw.write_text("".join(f"{text}\n" for text in texts))
    generated = run("fairseq-generate", prepared.path, *TASK, "--gen-subset", "test", "--path", trained, *SHORT)
    flags = [*TASK, "--path", trained, *SHORT, "--input", raw, "--buffer-size", "3"]
    interactive = run("fairseq-interactive", tmp_path, *flags)
    ours = [summary.text for summary in summarizer.summarize(texts, **DECODING)]
    for done in (generated, interactive):
        assert done.returncode == 0, done.stdout
        found = {int(i): text for i, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.stdout, re.MULTILINE)}
        assert [found[i] for i in range(3)] == ours
    # Sources and targets are texts again, and scored.
    targets = dict(re.findall(r"^T-(\d+)\t(.*)$", generated.stdout, re.MULTILINE))
    assert one_line(papers("test", 1)[0]["abstract"]).startswith(targets["0"].rstrip("�"))
    assert re.search(r"Generate test with beam=2: rouge1 \d+\.\d+ ", generated.stdout)


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


@for_each("long", ["truncate", "chunk", "merge", "sections", "extract"])
def test_every_way_to_read_a_long_document_works(summarizer: Summarizer, long: str) -> None:
    text = "# Introduction\n\n" + "Bees fly – fast 😀. They do not swim. " * 60
    (summary,) = summarizer.summarize([text], long=long, **DECODING)
    limit = summarizer.model.max_source_positions
    assert summary.document_tokens > limit
    for part in summary.pieces or [summary]:
        assert part.read_tokens <= limit


def test_an_export_writes_the_same(summarizer: Summarizer, tmp_path: Path) -> None:
    export_model(summarizer.model, tmp_path / "export", "# A model\n")
    assert (tmp_path / "export" / "tokenizer.json").read_bytes() == bart_bytes()
    assert not (tmp_path / "export" / "sentencepiece.model").exists()
    exported = Summarizer.from_pretrained(tmp_path / "export", "cpu")
    assert exported.summarize([TEXT], **DECODING) == summarizer.summarize([TEXT], **DECODING)
    # An export may replace it.
    export_model(summarizer.model, tmp_path / "export", "# A model\n")


def test_an_explanation_shows_the_text_of_the_document(summarizer: Summarizer) -> None:
    explained = summarizer.explain(TEXT, **DECODING)
    assert explained.summary == summarizer.summarize([TEXT], **DECODING)[0]
    assert lines("".join(explained.document)) == TEXT.split("\n")
    tokens = summarizer.model.tokenizer.encode(TEXT)
    assert len(explained.document) == explained.summary.read_tokens == len(tokens) + 2
    assert explained.document[0] == explained.document[-1] == ""
    assert explained.reached is not None and len(explained.reached) == len(explained.document)
    assert len(explained.written) == explained.summary.tokens
    assert " ".join("".join(explained.written).split()) == explained.summary.text


def test_a_page_of_an_explanation_holds_the_text(trained: Path, tmp_path: Path) -> None:
    paper, target = tmp_path / "paper.txt", tmp_path / "page.html"
    paper.write_text(TEXT)
    flags = ["--explain", target, "--beam", 2, "--min-len", 4, "--max-len", 12, "--device", "cpu"]
    done = CliRunner().invoke(main, [str(each) for each in ("summarize", trained, paper, *flags)])
    assert done.exit_code == 0, done.output
    page = target.read_text()
    (shown,) = texts_of(only_document(page))
    assert lines(shown) == TEXT.split("\n")


def test_labels_need_another_tokenizer(prepared: DataFolder, tmp_path: Path) -> None:
    arguments = [
        "prepare",
        prepared.path.parent,
        "--labels",
        "--tokenizer",
        prepared.tokenizer_path,
        "--out",
        tmp_path / "x",
    ]
    refused = CliRunner().invoke(main, list(map(str, arguments)))
    assert refused.exit_code == 1
    assert "Labels need a tokenizer with the piece <sentence> before sentences, but" in refused.output
