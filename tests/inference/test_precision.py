"""The precision that a model computes in: what the machine has decides, and it is said."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from explanations import page_data
from invoking import run
from refusals import refused

from pyramidions import Extractor
from pyramidions.inference import Summarizer, load_model
from pyramidions.inference.precision import AUTO, PRECISIONS, found_precision, in_precision, multiplies
from pyramidions.inference.sentence_vectors import EncoderVectors
from pyramidions.nn.reduced import Int8Linear

CPU = torch.device("cpu")
SHORT = {"beam": 2, "min_len": 4, "max_len": 12}
SAID = {
    "float32": "Computes in float32.",
    "bfloat16": "Computes in bfloat16, for which this CPU has instructions.",
    "int8": "Computes in int8, for which this CPU has instructions.",
}
SLOW, NONE = "which may be slower than float32", "this CPU has no instructions for"
UNTOLD = "torch does not tell whether this CPU has instructions for"


@pytest.fixture
def has(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what makes the CPU have some instructions, and torch tell it."""

    def tell(**capabilities: bool) -> None:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)

    return tell


@pytest.mark.parametrize(
    ("told", "asked", "name", "sentence"),
    [
        ({"avx512_bf16": True, "amx_bf16": False}, AUTO, "bfloat16", SAID["bfloat16"]),
        ({"avx512_bf16": False, "amx_bf16": True}, AUTO, "bfloat16", SAID["bfloat16"]),
        ({"bf16": True, "neon": True}, AUTO, "bfloat16", SAID["bfloat16"]),
        ({"avx512_bf16": False}, AUTO, "float32", "Computes in float32: this CPU has no instructions for bfloat16."),
        ({"vsx": True}, AUTO, "float32", f"Computes in float32: {UNTOLD} bfloat16."),
        ({"avx512_bf16": False}, "float32", "float32", SAID["float32"]),
        ({"avx512_bf16": False}, "bfloat16", "bfloat16", f"Computes in bfloat16, {SLOW}: {NONE} bfloat16."),
        ({"avx512_bf16": False}, "int8", "int8", f"Computes in int8, {SLOW}: {UNTOLD} int8."),
        ({"avx512_bf16": True, "avx_vnni": True, "avx512_vnni": False}, "int8", "int8", SAID["int8"]),
    ],
)
def test_the_machine_decides_unless_told_otherwise(
    told: dict[str, bool], asked: str, name: str, sentence: str, has: Callable[..., None]
) -> None:
    has(**told)
    assert found_precision(asked, CPU) == (name, sentence)


def test_small_models_stay_in_float32_on_a_cpu_and_int8_is_for_cpus(has: Callable[..., None]) -> None:
    has(avx512_bf16=True)
    assert [found_precision(AUTO, CPU, size).name for size in (255, 256, None)] == ["float32", "bfloat16", "bfloat16"]
    assert found_precision("bfloat16", CPU, 128).name == "bfloat16"
    with refused("`precision` int8"):
        found_precision("int8", torch.device("cuda:1"))


def test_an_old_torch_tells_nothing_and_a_gpu_tells_by_its_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert multiplies("bfloat16", CPU) is None
    for capability, told in (((7, 5), False), ((8, 0), True), ((9, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, told=capability: told)
        assert multiplies("bfloat16", torch.device("cuda")) is told
    monkeypatch.setattr(torch.version, "hip", "6.0")
    assert multiplies("bfloat16", torch.device("cuda")) is None


def test_without_instructions_for_int8_weights_leave_room_for_sums_of_16_bits(has: Callable[..., None]) -> None:
    for told, largest in (({"avx512_vnni": True}, 127), ({"avx512_vnni": False}, 63), ({}, 63)):
        has(**told)
        made = in_precision(torch.nn.Sequential(torch.nn.Linear(8, 32)), found_precision("int8", CPU))
        assert isinstance(made[0], Int8Linear) and made[0].weight_int8.abs().max() == largest


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_summary_and_its_explanation_are_written_in_each_precision(precision: str, checkpoint: Path) -> None:
    article = "Cells divide in warm water. Nobody knows why they stop in the cold. " * 20
    summarizer = Summarizer.from_pretrained(checkpoint, "cpu", precision)
    (summary,) = summarizer.summarize([article], **SHORT)
    explanation = summarizer.explain(article, **SHORT)
    assert summarizer.precision.name == explanation.settings["precision"] == precision
    assert explanation.summary == summary and 5 <= summary.tokens <= 13
    drew = explanation.drew_on(0, 1)
    assert drew is not None and drew.isfinite().all() and drew.sum() == pytest.approx(1, abs=0.01)
    (exact,) = Summarizer.from_pretrained(checkpoint, "cpu").summarize([article], **SHORT)
    assert summary.score == pytest.approx(exact.score, abs=0.1)
    assert (summary == exact) is (precision == "float32")
    # One model serves several precisions.
    model = load_model(checkpoint)
    assert Summarizer(model, "cpu", precision).summarize([article], **SHORT) == [summary]
    assert Summarizer(model, "cpu").summarize([article], **SHORT) == [exact]


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_vectors_of_sentences_are_close_in_each_precision(precision: str, checkpoint: Path) -> None:
    sentences = ["One two three.", "Cells grow."]
    exact = EncoderVectors.from_pretrained(checkpoint, "cpu")(sentences)
    vectors = EncoderVectors.from_pretrained(checkpoint, "cpu", precision)
    found = vectors(sentences)
    assert Extractor(vectors=vectors).precision == vectors.precision
    assert not np.array_equal(found, exact)
    np.testing.assert_allclose((found * exact).sum(axis=1), 1, atol=0.02)


SMALL = "Computes in float32: a model of 16 dimensions gains little in bfloat16."


@pytest.mark.parametrize(
    ("flags", "name", "said"), [([], "float32", SMALL), (["--precision", "bfloat16"], "bfloat16", SAID["bfloat16"])]
)
def test_the_command_says_the_precision_and_the_page_names_it(
    flags: list[str], name: str, said: str, checkpoint: Path, tmp_path: Path, has: Callable[..., None]
) -> None:
    has(avx512_bf16=True, avx512_vnni=True)
    page = tmp_path / "page.html"
    short = ("--device", "cpu", "--beam", 1, "--min-len", 3, "--max-len", 3)
    done = run("summarize", checkpoint, *short, *flags, "--explain", page, text="One two three.")
    assert (done.exit_code, done.stderr) == (0, f"{said}\n")
    assert page_data(page.read_text(encoding="utf-8"))["settings"]["precision"] == name
    done = run("extract", "--vectors", checkpoint, "--device", "cpu", *flags, text="One two three.")
    assert (done.exit_code, done.stdout) == (0, "One two three.\n") and f"{said}\n" in done.stderr
    # Where nothing is computed nothing is said.
    assert "Computes" not in run("extract", "--method", "lead", text="One two three.").stderr
