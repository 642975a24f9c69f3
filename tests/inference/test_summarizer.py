"""Summaries without fairseq: the same as fairseq's, in the order asked for, from files that need no pickle."""

import json
import lzma
import math
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import small_exports
import torch
from conftest import SAMPLE
from fairseq_commands import TASK, run

from pyramidions.data.folder import DataFolder
from pyramidions.inference import Summarizer, export_model, load_model
from pyramidions.inference.search import DecodingSettings
from pyramidions.nn import Hypothesis
from pyramidions.text.tokenizer import EOS

SHORT = {"beam": 2, "min_len": 4, "max_len": 12}


@pytest.fixture(scope="module")
def articles() -> list[str]:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        return [json.loads(line)["article"] for _, line in zip(range(10), papers, strict=False)]


@pytest.fixture(scope="module")
def summarizer(checkpoint: Path) -> Summarizer:
    return Summarizer.from_pretrained(checkpoint)


@pytest.fixture(scope="module")
def exported(summarizer: Summarizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "model"
    export_model(summarizer.model, folder, "# A model\n")
    return folder


def test_summaries_and_scores_are_those_of_fairseq_generate(
    data: DataFolder, checkpoint: Path, summarizer: Summarizer, articles: list[str]
) -> None:
    flags = ["--beam", "2", "--min-len", "4", "--max-len-b", "12", "--no-repeat-ngram-size", "2", "--lenpen", "1.5"]
    done = run("fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", checkpoint, *flags)
    lines = re.findall(r"^D-(\d+)\t(\S+)\t(.*)$", done.stdout, re.MULTILINE)
    theirs = {int(index): (float(score), text) for index, score, text in lines}
    ours = summarizer.summarize(articles, **SHORT, no_repeat_ngram=2, length_penalty=1.5, batch_size=3)
    assert len(theirs) == len(ours) == 10
    for index, summary in enumerate(ours):
        score, text = theirs[index]
        assert summary.text == text
        # fairseq prints logarithms of base 2.
        assert summary.score / math.log(2) == pytest.approx(score, abs=1e-3)


def test_results_come_in_the_order_of_the_texts_whatever_shares_a_batch(
    summarizer: Summarizer, articles: list[str]
) -> None:
    texts = [articles[0], "A word.", articles[1][:500], "A few words more than that."]
    together = summarizer.summarize(texts, **SHORT)
    alone = [summarizer.summarize([text], **SHORT)[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text and one.score == pytest.approx(other.score, abs=1e-4)
    assert summarizer.summarize([], **SHORT) == []


def test_a_summary_says_how_much_of_its_document_was_read(summarizer: Summarizer, articles: list[str]) -> None:
    long, short = summarizer.summarize([articles[0], "A word."], **SHORT)
    assert long.was_cut and long.read_tokens == 256 < long.document_tokens
    assert not short.was_cut and short.read_tokens == short.document_tokens < 10
    assert 5 <= short.tokens <= 13
    # Nothing beyond the cut changes anything.
    (again,) = summarizer.summarize([articles[0] + " More text."], **SHORT)
    assert again.text == long.text and again.document_tokens > long.document_tokens


def test_an_exported_model_writes_the_same_and_holds_each_weight_once(
    summarizer: Summarizer, exported: Path, articles: list[str]
) -> None:
    ours, again = (each.summarize(articles[:3], **SHORT) for each in (summarizer, Summarizer.from_pretrained(exported)))
    assert ours == again
    parameters = sum(p.numel() for p in summarizer.model.transformer.parameters())
    assert 4 * parameters <= (exported / "model.safetensors").stat().st_size < 4 * parameters + 20_000


def test_an_exported_model_loads_where_fairseq_is_not_installed(exported: Path, tmp_path: Path) -> None:
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(
            ("fairseq", "hydra", "omegaconf", "__editable__", "pyramidions", "_pyramidions")
        ):
            (tmp_path / package.name).symlink_to(package)
    program = (
        "import sys, pyramidions.inference as i\n"
        f"summary, = i.Summarizer.from_pretrained({str(exported)!r}).summarize(['A word.'], min_len=2, max_len=3)\n"
        "print(summary.tokens, 'fairseq' in sys.modules, __import__('importlib.util').util.find_spec('fairseq'))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": f"{root}:{tmp_path}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) in (("3 False None\n", ""), ("4 False None\n", ""))


def test_a_folder_of_checkpoints_gives_its_best(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint_last.pt").write_bytes(b"damaged")
    (tmp_path / "checkpoint_best.pt").symlink_to(checkpoint)
    assert load_model(tmp_path).max_target_positions == 48


def test_a_document_shorter_than_a_usual_summary_gets_a_shorter_one(
    summarizer: Summarizer, articles: list[str]
) -> None:
    # The model's own bounds are 72 and 966, and its targets end at 47 tokens without their end.
    texts = ["A word.", articles[0][:60], articles[0]]
    tokens = [len(summarizer.model.tokenizer.encode(text)) for text in texts]
    assert 4 <= tokens[0] < 8 and 16 <= tokens[1] < 32
    summaries = summarizer.summarize(texts)
    assert [summary.shortened_to for summary in summaries] == [4, 16, None]
    # With its end, from half as many tokens to as many.
    assert 2 <= summaries[0].tokens - 1 <= 4 and 8 <= summaries[1].tokens - 1 <= 16 and summaries[2].tokens == 48
    for summary, text in zip(summaries, texts, strict=True):
        assert summarizer.summarize([text])[0].text == summary.text
        assert summarizer.explain(text).summary.text == summary.text


DEEP = DecodingSettings(2, 72, 966, 1.0, 0)
FIXED = DEEP._replace(lowers_min=False, lowers_max=False)


@pytest.mark.parametrize(
    ("settings", "length", "expected"),
    [
        (DEEP, (2,), (0, 1, 1)),
        (DEEP, (64,), (16, 32, 32)),
        (DEEP, (65,), (32, 64, 64)),
        (DEEP, (401,), (72, 384, 384)),
        (DEEP, (1025,), (72, 966, None)),
        # A limit that the user gives is not told as lowered.
        (DEEP._replace(max_len=100, lowers_max=False), (65,), (32, 100, None)),
        (DEEP._replace(min_len=9, lowers_min=False), (4,), (9, 9, 9)),
        # Parts share the lengths.
        (FIXED, (5000,), (72, 966, None)),
        (FIXED, (5000, 4), (18, 242, None)),
        (DEEP, (65, 4), (18, 64, 64)),
        # A rewritten sentence may be as long as it was.
        (DEEP, (31, 1, True), (16, 32, 32)),
        (DEEP, (400, 1, True), (72, 400, 400)),
    ],
)
def test_lengths_fit_a_short_document_a_part_and_a_sentence(
    settings: DecodingSettings, length: tuple[int, ...], expected: tuple[int, int, int | None]
) -> None:
    assert settings.for_length(*length) == expected


def test_a_model_without_capitals_writes_words_as_the_document_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folding = Summarizer.from_pretrained(small_exports.summarizer(tmp_path / "model", fold_case=True), "cpu")
    written = torch.tensor([*folding.model.tokenizer.encode("a bee flies fast bees fly"), EOS])
    best = [Hypothesis(written, 0.0, torch.zeros(len(written)))]
    monkeypatch.setattr(folding, "_best", lambda documents, _: (best * len(documents), ()))
    document = "We saw that BEES fly Fast. A BEE flies."
    for long in ("truncate", "chunk", "extract"):
        (found,) = folding.summarize([document], long=long)
        assert found.text == "A BEE flies Fast BEES fly", long
