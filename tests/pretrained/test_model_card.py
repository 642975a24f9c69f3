"""A card shows what comes from outside as it stands, whatever it spells."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyramidions.base.markdown import plain, shell_word
from pyramidions.conversion.card_data import CardScores
from pyramidions.conversion.model_card import _data, _selection
from pyramidions.data.divide import Divide
from pyramidions.data.folder import DataFolder
from pyramidions.data.pairing import Pairing
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.data.select_sentences import SelectByOracle, SelectSentences
from pyramidions.data.vocabulary import Settings
from pyramidions.extract import Lead
from pyramidions.inference import SavedExtractor


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("CC BY-NC 4.0", "CC BY-NC 4.0"),
        ("my_summarizer", "my_summarizer"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("&lt;", "&amp;lt;"),
        ("a\n\n# b", "a # b"),
        ("# b", "\\# b"),
        ("- b", "\\- b"),
        ("> b", "\\> b"),
        ("1. b", "1\\. b"),
        ("[a](javascript:b)", "\\[a\\](javascript:b)"),
        ("__init__ *b* `c` ~d~ \\", "\\_\\_init\\_\\_ \\*b\\* \\`c\\` \\~d\\~ \\\\"),
        ("caf\udce9", "caf?"),
    ],
)
def test_markdown_and_html_are_shown_and_not_obeyed(text: str, escaped: str) -> None:
    assert plain(text) == escaped


def test_a_systems_name_stays_in_its_cell(tmp_path: Path) -> None:
    means = {key: {"mean": 1.0, "low": 0.5, "high": 2.0} for key in ("rouge1", "rouge2", "rougeL", "rougeLsum")}
    scores = {"signature": "rouge | n=1 <b>", "systems": {"a|b\n<i>": means}}
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    head, _, row, *_, signature = CardScores.read(tmp_path / "scores.json").tables().splitlines()
    assert head.count("|") == row.count("|") == 6 and row.startswith("| a&#124;b &lt;i> | 1.00 [0.50, 2.00] |")
    assert signature == "Means with 95% intervals. rouge | n=1 &lt;b>"


def test_all_figures_of_a_file_are_in_the_card_five_to_a_table(tmp_path: Path) -> None:
    names = ("meteor", "rouge1", "rouge2", "rougeL", "rougeLsum", "coverage", "unknown")
    means = {key: {"mean": 1.0, "low": 0.5, "high": 2.0} for key in names}
    (tmp_path / "scores.json").write_text(json.dumps({"signature": "x", "systems": {"ours": means}}))
    heads = [
        line for line in CardScores.read(tmp_path / "scores.json").tables().splitlines() if line.startswith("|  |")
    ]
    assert heads == ["|  | METEOR | ROUGE-1 | ROUGE-2 | ROUGE-L | ROUGE-Lsum |", "|  | Coverage |"]


@pytest.mark.parametrize(
    ("pairing", "sentence"),
    [
        (None, None),
        (Divide(least_words=1), "are sections with their parts of a summary: use `--long sections`."),
        (
            SelectByOracle(20),
            "are sentences that the oracle selected by the reference summary: use `--long extract`, with `--select` "
            "and a trained extractor if you have one.",
        ),
        (
            SelectSentences(Lead, 20, {"method": "lead"}),
            "are sentences that lead selected: use `--long extract --select lead`.",
        ),
        (
            SelectSentences(Lead, 20, {"method": "model", "sha256": "abc"}),
            "use `--long extract --select` with this extractor (SHA-256 of its weights, tokenizer and length: abc).",
        ),
    ],
)
def test_what_a_model_was_trained_on_is_said(pairing: Pairing | None, sentence: str | None, tmp_path: Path) -> None:
    record = {"article": "# Methods\n\nBees fly fast.\n\n# Results\n\nThey sting.", "abstract": "Bees sting."}
    (tmp_path / "train.jsonl").write_text(json.dumps(record))
    corpora = {"train": Corpus(str(tmp_path / "train.jsonl"))}
    prepare(tmp_path / "data", corpora, Settings(25), pairings={"train": pairing} if pairing else None)
    folder = DataFolder(tmp_path / "data")
    *_, row, last = _data(SimpleNamespace(tokenizer=folder.tokenizer()), folder).splitlines()
    assert last.startswith("| train |") if sentence is None else row == "" and last.endswith(sentence)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ((None, "none", 0.7), "at most 220 words; repetitions allowed"),
        ((150, "trigrams", 0.7), "at most 150 words, as in training; no repeated trigrams"),
        ((150, "mmr", 0.4), "at most 150 words, as in training; maximal marginal relevance, weight 0.4"),
    ],
)
def test_the_rules_of_an_extractor_are_said(rules: tuple[int | None, str, float], said: str) -> None:
    assert _selection(SavedExtractor(None, None, None, 64, *rules)) == said  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["my model", "it's", "a\n```\n# b", 'it\'s\n"b"\t\\n'])
def test_a_shell_reads_a_name_in_the_code_of_a_card_as_it_is_and_on_one_line(name: str) -> None:
    word = shell_word(name)
    assert len(word.splitlines()) == 1
    assert (
        subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True).stdout == name
    )
