"""Wrong arguments of public functions and classes: each is refused in one sentence, and none is taken."""

import inspect
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import small_exports
import small_language_models

import pyramidions.extract
import pyramidions.inference
from pyramidions import (
    Extraction,
    Extractor,
    ExtractorMap,
    SamplingOptions,
    Segmenter,
    Summarizer,
    SummarizerMap,
    UserError,
)
from pyramidions.base.arguments import Range, check, checked
from pyramidions.extract import HipoRank, TextRank, TfIdf
from pyramidions.inference import load_extractor, load_language_model, load_model
from pyramidions.inference.decoding_options import DecodingOptions

NAN, INF, HUGE, BYTES, LIST, MAPPING, THING = math.nan, math.inf, 10**30, b"x", [1], {"a": 1}, object()
WRONG = {"None": None, "True": True, "1.5": 1.5, "nan": NAN, "inf": INF, "0": 0, "-1": -1, "10**30": HUGE, "'x'": "x"}
WRONG |= {"bytes": BYTES, "[1]": LIST, "{'a': 1}": MAPPING, "object()": THING}
# What of these each argument takes, by its name.
OPTIONAL = (
    "options vectors long device precision words sentences redundancy select section_types on_read "
    "beam max_len sampling reference_column on_progress corpus language query kernels"
)
FINE: dict[str, list[str]] = {name: ["None"] for name in OPTIONAL.split()}
FINE |= {name: ["None", "0"] for name in ("min_len", "no_repeat_ngram")}
FINE |= {name: ["None", "'x'"] for name in ("reference", "query_column")}
FINE["length_penalty"] = ["None", "1.5", "0", "-1"]
FINE |= {name: ["'x'"] for name in ("text", "name", "column", "into")}
FINE |= {name: ["True"] for name in ("skip_empty", "copied")}
FINE |= {"temperature": ["1.5", "10**30"], "top_k": ["0"], "top_p": [], "seed": ["0", "10**30"], "most": ["0"]}
FINE["entropies"] = ["0"]
FINE |= {"mu": ["1.5", "0", "-1", "10**30"], "damping": ["0"], "alpha": ["1.5", "10**30"]}
FINE |= {"lambda_1": FINE["mu"], "lambda_2": FINE["mu"]}


Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Return public callables, and arguments that they need."""
    folder = tmp_path_factory.mktemp("models")
    model = small_exports.summarizer(folder / "summarizer")
    segmenter = Segmenter.from_pretrained(small_language_models.saved(folder, "gumbel"), "cpu")
    summarizer = Summarizer.from_pretrained(model, "cpu")
    text = {"text": "bees fly fast. a bee with a ruler."}
    return {
        "Extractor": (Extractor, {}),
        "Extractor.extract": (Extractor("lead").extract, text),
        "Extractor.rules": (Extractor("lead").rules, {}),
        "ExtractorMap": (ExtractorMap, {}),
        "ExtractorMap.__call__": (ExtractorMap(), {"batch": {"text": ["x"]}}),
        "HipoRank": (HipoRank, {}),
        "SamplingOptions": (SamplingOptions, {}),
        "SegmentedText.most_frequent": (segmenter.segment("x y").most_frequent, {"most": 1}),
        "Segmenter": (Segmenter, {"model": segmenter.model}),
        "Segmenter.from_pretrained": (Segmenter.from_pretrained, {"path": folder / "model.pt"}),
        "Segmenter.segment": (segmenter.segment, {"text": "x"}),
        "Summarizer": (Summarizer, {"model": summarizer.model}),
        "Summarizer.explain": (summarizer.explain, {**text, "max_len": 1}),
        "Summarizer.explain_pieces": (summarizer.explain_pieces, {**text, "max_len": 1}),
        "Summarizer.from_pretrained": (Summarizer.from_pretrained, {"path": model}),
        "Summarizer.summarize": (summarizer.summarize, {"texts": list(text.values()), "max_len": 1, "min_len": 0}),
        "SummarizerMap": (SummarizerMap, {"model": model}),
        "SummarizerMap.__call__": (SummarizerMap(model, max_len=1), {"batch": {"text": ["x"]}}),
        "TextRank": (TextRank, {}),
        "TfIdf": (TfIdf, {"corpus": ["some words"]}),
        "load_extractor": (load_extractor, {"path": model}),
        "load_language_model": (load_language_model, {"path": folder / "model.pt"}),
        "load_model": (load_model, {"path": model}),
    }


def of_decoding(name: str) -> bool:
    return name in DecodingOptions.__annotations__


def test_each_wrong_value_of_each_argument_is_refused_in_one_sentence(calls: Calls) -> None:
    for name, (call, needed) in calls.items():
        arguments = [*inspect.signature(call).parameters]
        if "decoding" in arguments:
            arguments = [*arguments[:-1], *DecodingOptions.__annotations__]
        for argument in arguments:
            for shown, value in WRONG.items():
                if shown in FINE.get(argument, []):
                    continue
                given = {key: each for key, each in needed.items() if not (of_decoding(key) and of_decoding(argument))}
                with pytest.raises(UserError, match=r"^[^\n]+\.$"):
                    found = call(**{**given, argument: value})
                    next(iter(found)) if inspect.isgenerator(found) else None
                    print(f"{name} takes {argument}={shown}")


@pytest.mark.parametrize("column", ["abc", {"a": "b"}, [1], 3, np.array([["x"]]), [b"x"]])
def test_a_column_that_is_no_list_of_texts_is_refused(column: object) -> None:
    with pytest.raises(UserError, match=r"^The column 'text' .*must be a .*text.*\.$"):
        ExtractorMap("lead")({"text": column})


def test_a_name_that_is_no_argument_is_an_error_of_python_that_names_the_function(calls: Calls) -> None:
    for name in ("Extractor.extract", "Summarizer.summarize", "Summarizer.explain", "SummarizerMap"):
        call, needed = calls[name]
        with pytest.raises(TypeError, match=rf"{name}.*\(\) got an unexpected keyword argument 'tokens'$"):
            call(**needed, tokens=3)


# They hold what was computed or read, and are made by us.
RECORDS = {"Explanation", "SavedExtractor", "SavedLanguageModel", "SavedModel", "SegmentedText", "Summary", "Budget"}
RECORDS |= {"Ranker", "SelectionRules"}
CLASS_METHODS, SPECIAL = ("from_pretrained",), ("__init__", "__call__")


def test_no_public_function_takes_arguments_unchecked() -> None:
    homes = (pyramidions, pyramidions.extract, pyramidions.inference)
    unchecked = []
    for public in (getattr(home, name) for home in homes for name in home.__all__):
        if not callable(public) or public.__name__ in {*RECORDS, "Extraction", "UserError"}:
            continue
        methods = {
            name: each for name, each in vars(public).items() if inspect.isroutine(each) or name in CLASS_METHODS
        }
        own = {name: each for name, each in methods.items() if not name.startswith("_") or name in SPECIAL}
        for name, function in own.items() if inspect.isclass(public) else [("", public)]:
            function = getattr(function, "__func__", function)
            if {*inspect.signature(function).parameters} - {"self", "cls"} and not hasattr(function, "__wrapped__"):
                unchecked.append(f"{public.__name__}.{name}")
    assert unchecked == []


HINTS = {"n": Annotated[int, Range(1)] | None, "x": float, "text": str, "texts": list[str]}
HINTS |= {"extraction": Extraction, "above": Annotated[float, Range(0)], "path": str | Path, "names": Sequence[str]}


def test_numbers_of_numpy_are_numbers() -> None:
    check({"n": np.int64(3), "x": np.float32(1.5), "texts": ["a"]}, HINTS)
    check({"n": 10**5000}, HINTS)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("n", np.int64(0), "`n` must be at least 1, but is 0."),
        pytest.param("n", -(10**5000), "`n` must be at least 1, but is a number of thousands of digits.", id="n-long"),
        ("x", math.nan, "`x` must be a number, but is nan."),
        ("x", np.True_, "`x` must be a number, but is True."),
        ("texts", ["a", 2], "`texts[1]` must be a text, but is 2."),
        ("texts", "a" * 100, f"`texts` must be a list of texts, but is '{'a' * 79}…: put it in brackets."),
        (
            "text",
            Path("a.txt"),
            "`text` must be a text, but is a PosixPath: give what the file holds, or use what reads files.",
        ),
        ("extraction", 3, "`extraction` must be an Extraction, but is 3."),
        ("extraction", slice(3), "`extraction` must be an Extraction, but is a slice."),
        ("above", math.nan, "`above` must be at least 0, but is nan."),
        pytest.param("x", 10**5000, "`x` must be a number, but is a number of thousands of digits.", id="x-long"),
        ("names", range(2), "`names[0]` must be a text, but is 0."),
        ("path", 300 * "a", f"`path` must be a path whose names the system allows, but is '{79 * 'a'}…."),
        ("path", Path(300 * "a"), "`path` must be a path whose names the system allows, but is a PosixPath."),
    ],
)
def test_a_wrong_argument_is_named(name: str, value: object, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        check({name: value}, HINTS)
    assert str(refused.value) == sentence


def test_a_checked_function_keeps_its_name_its_signature_and_its_defaults() -> None:
    @checked
    def repeated(text: str, times: int = 2) -> str:
        """Return a text several times."""
        return text * times

    assert (repeated("a"), repeated.__name__, repeated.__doc__) == ("aa", "repeated", "Return a text several times.")
    assert str(inspect.signature(repeated)) == "(text: str, times: int = 2) -> str"
