"""What a user gets wrong is said in one sentence that names it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import small_exports

from pyramidions import Extractor, SamplingOptions, Summarizer, UserError, as_one
from pyramidions.extract import TfIdf
from pyramidions.inference import ExtractorMap
from pyramidions.inference.compression import as_markdown, compress, estimate_tokens, tokens_of
from pyramidions.inference.served_model import ServedModel, ServedSummarizer
from pyramidions.scoring.summary_check import check_summary

ONE = ["A word."]
SERVED = ServedSummarizer(ServedModel("http://localhost:1/v1", "m"), "chunk", Extractor("lead"))


class Places(NamedTuple):
    """What calls need."""

    summarizer: Summarizer
    folder: Path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("files")
    (folder / "paper.txt").write_text("Bees fly.")
    return Places(Summarizer.from_pretrained(small_exports.summarizer(folder / "model"), "cpu"), folder)


def sampled(**options: Any) -> Callable[[Places], object]:
    return lambda at: at.summarizer.summarize(ONE, sampling=SamplingOptions(**options))


def summarize(texts: Any, **options: Any) -> Callable[[Places], object]:
    return lambda at: at.summarizer.summarize(texts, **options)


SAID: list[tuple[Callable[[Places], object], str]] = [
    (summarize("A word."), "`texts` must be a list of texts, but is 'A word.': put it in brackets."),
    (summarize(["A word.", " \n\t"]), "A document must hold text, but document 2 holds none."),
    (summarize([*ONE, b"bytes"]), "`texts[1]` must be a text, but is b'bytes'."),
    (summarize(ONE, max_len=16), "`max_len` must be at most 15, what the model writes, but is 16."),
    (summarize(ONE, beam=0), "`beam` must be at least 1, but is 0."),
    (summarize(ONE, length_penalty=11), "`length_penalty` must be from -10 to 10, but is 11."),
    (summarize(ONE, long="cut"),
     "`long` must be one of truncate, chunk, merge, sections, extract, rewrite, but is 'cut'."),
    (summarize(ONE, select="lead"), "`select` needs `long` 'extract' or 'rewrite', but `long` is 'truncate'."),
    (summarize(ONE, long="merge", section_types="a.csv"),
     "`section_types` is an argument of `long` 'sections', but `long` is 'merge'."),
    (summarize(ONE, sampling=SamplingOptions(), beam=3), "`beam` is an option of beam search, but is 3 with sampling."),
    (sampled(temperature=-1.0), "`temperature` must be above 0, but is -1.0."),
    (sampled(top_p=0), "`top_p` must be above 0 and at most 1, but is 0."),
    (lambda at: Summarizer.from_pretrained(at.folder / "none", "cuda:99"), "`device` must be one that torch finds "),
    (lambda at: Summarizer.from_pretrained(at.folder / "none", precision="half"),
     "`precision` must be one of auto, float32, bfloat16, int8, but is 'half'."),
    (lambda _: Extractor("textrank", {"damping": 2.0}), "`damping` must be at least 0 and below 1, but is 2.0."),
    (lambda _: Extractor("oracle", {"mu": 1}), "The method 'oracle' has no options, but was given 'mu'."),
    (lambda _: Extractor("lead", device="cpu"), "`device` is for trained extractors, but the method is 'lead'."),
    (lambda _: TfIdf(["1 2", "-"]), "The corpus of document frequencies must hold a word of two letters."),
    (lambda _: Extractor().extract("x", redundancy="x"), "`redundancy` must be one of none, trigrams, mmr"),
    (lambda _: Extractor("oracle").extract("x"), "The method 'oracle' needs a `reference`"),
    (lambda _: Extractor().extract("x", query="Why?"),
     "`query` is for models of concepts, such as 'meetings', but the method is 'hiporank'."),
    (lambda _: Extractor("meetings").extract("x", query="Why?"), "`query` must hold a word that is no stop word, but "),
    (lambda _: Extractor("meetings").extract("x", reference="x"), "`reference` is for the method 'oracle', but the "),
    (lambda _: ExtractorMap("lead", query_column="query"), "`query_column` is for models of concepts, but the method "),
    (lambda at: Extractor().extract(str(at.folder / "paper.txt")), "`text` must be a text, but "),
    (lambda at: Extractor().extract_file(at.folder / "papers.jsonl"), "`path` must hold one document, but "),
    (lambda at: Extractor().extract(at.folder / "paper.txt"), "`text` must be a text, but is a PosixPath: give what "),
    (lambda _: Extractor().extract_file("a\0.txt"), "No file can be called 'a\\x00.txt'."),
    (lambda _: Extractor().extract_file("\ud800.txt"), "No file can be called '\ufffd.txt'."),
    (lambda _: check_summary(None, "Bees fly."), "`summary` must be a text, but is None."),
    (lambda _: check_summary("Bees fly.", 1), "`document` must be a text or a function, but is 1."),
    (lambda _: check_summary("Bees fly.", "Bees fly.", b"en"), "`language` must be a text or None, but is b'en'."),
    (lambda _: check_summary("Bees.", "Bees.", entails=1), "`entails` must be an EntailmentJudge or None, but is 1."),
    (lambda _: check_summary("Bees.", "Bees.", on_progress=1), "`on_progress` must be a function, but is 1."),
    (lambda _: as_markdown(None), "`document` must be a text, but is None."),
    (lambda _: tokens_of(1), "`tokenizer` must be a text or a Path, but is 1."),
    (lambda _: estimate_tokens("Bees."), "`texts` must be a list of texts, but is 'Bees.': put it in brackets."),
    *(
        (lambda _, found=found: compress("Bees fly.", Extractor(), 9, lambda _: found),
         f"`count` must return a whole number for each of 1 texts, but returned {said}.")
        for found, said in ((None, "None"), (3, "3"), ([], "a list"), ([-1], "a list"), ([1.5], "a list"))
    ),
    (lambda _: SERVED.summarize(None), "`document` must be a text, but is None."),
    (lambda _: SERVED.summarize("Bees fly.", 3), "`query` must be a text or None, but is 3."),
    (lambda _: ExtractorMap("oracle"), "The method 'oracle' and `reference_column` must be given together."),
    (lambda _: as_one({}), "`documents` must hold a document, but is empty."),
    (lambda _: as_one({"a": "Bees fly.", "": " "}), "`documents` must hold texts, but '' holds none."),
    (lambda _: as_one({" ": "Bees fly."}), "`documents` must have names, but one is ' '."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), SAID, ids=[sentence[:40] for _, sentence in SAID])
def test_a_wrong_argument_is_named(call: Callable[[Places], object], sentence: str, places: Places) -> None:
    with pytest.raises(UserError) as refused:
        call(places)
    assert str(refused.value).startswith(sentence) and "\n" not in str(refused.value)
