"""Any text gets a summary or one sentence, in memory that a window decides."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import PAGE, pdf
from refusals import refused

from pyramidions.inference import Summarizer

SHORT = {"beam": 1, "min_len": 1, "max_len": 3}
WORDS = "Dogs bark at night. Why do they (see fig. 3) bark? "
ODD = {
    "one word": "word",
    "control characters": "a\x00b\x07 \x1b[31m c\x7f\x85d",
    "lone surrogates": "a\ud800 b\udfff",
    "right to left": "שלום עולם. \u202eمرحبا بالعالم؟ نعم.",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 👍🏽! " * 50,
    "many characters without a space": "x1y2" * 50_000,
    "combining characters": "e" + "\u0301" * 2000,
    "quotation marks": '"a\' `b" (c [d ' * 2000,
    "line ends": "a\r\n\u2028b\x0b\x0c" * 300,
}


@pytest.fixture(scope="module")
def summarizer(checkpoint: Path) -> Summarizer:
    return Summarizer.from_pretrained(checkpoint)


def test_odd_texts_are_summarized(summarizer: Summarizer) -> None:
    for kind, text in ODD.items():
        (summary,) = summarizer.summarize([text], **SHORT)
        assert summary.tokens <= 4 and summary.document_tokens > 1, kind
        assert summary.was_cut == (summary.document_tokens > 256), kind


def test_a_text_of_which_nothing_is_left_is_refused(summarizer: Summarizer) -> None:
    for text in ("", "\x00", "\ud800", "\u200b\ufeff", "\u202e"):
        with refused("1 holds none"):
            summarizer.summarize([text], **SHORT)


def test_what_is_read_of_a_text_of_many_windows_is_its_beginning(summarizer: Summarizer) -> None:
    texts = [WORDS * count for count in (100, 10_000)]
    short, long = summarizer.summarize(texts, **SHORT)
    assert (short.text, short.read_tokens) == (long.text, long.read_tokens)
    assert long.document_tokens - 1 == (short.document_tokens - 1) * 100
    counted: list[int] = []
    summarizer.summarize(texts, **SHORT, on_read=counted.append)
    # Texts are asked for one by one.
    assert counted[0] == len(texts[0]) and sum(counted) == sum(map(len, texts)) and len(counted) > 3


STATUS = Path("/proc/self/status")
# The peak that the system reports of a child holds what its parent took when it forked; this one does not.
PROGRAM = f"""
import sys
sys.argv = ["pyramidions", *sys.argv[1:]]
from pyramidions.cli import main
try:
    main()
finally:
    print(open("{STATUS}").read().split("VmHWM:")[1].split()[0])
"""


def summarize(checkpoint: Path, *arguments: object) -> tuple[int, str, int]:
    """Run the command; return its exit status, what it printed, and its peak memory in bytes."""
    command = ["summarize", checkpoint, *arguments, "--beam", 1, "--min-len", 1, "--max-len", 3]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    *printed, peak = done.stdout.splitlines()
    return done.returncode, "\n".join(printed), int(peak) * 1024


@pytest.fixture(scope="module")
def idle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the peak memory of a command that summarizes a word."""
    if not STATUS.exists():
        pytest.skip("needs the peak memory of a process as Linux tells it")
    path = tmp_path_factory.mktemp("idle") / "word.txt"
    path.write_text("word")
    status, _, peak = summarize(checkpoint, path)
    assert status == 0
    return peak


SIZE = 6_000_000
WINDOWS = 20_000_000  # memory that windows take, whatever the size of a file
HUGE: dict[str, Callable[[], bytes]] = {
    "huge.txt": lambda: WORDS.encode() * (SIZE // len(WORDS)),
    "unspaced.txt": lambda: b"x1y2" * (SIZE // 4),
    "huge.md": lambda: f"# One\n\n* {WORDS * 4}\n".encode() * (SIZE // 4 // len(WORDS)),
    "huge.html": lambda: PAGE.encode() + f"<p>{WORDS}<br>".encode() * (SIZE // len(WORDS)),
    "line.jsonl": lambda: json.dumps({"text": WORDS * (SIZE // len(WORDS))}).encode(),
    "huge.pdf": lambda: pdf(*["A word. " * 50] * 100, picture=bytes(SIZE)),
}


OTHERS = [name for name in HUGE if name not in ("unspaced.txt", "huge.pdf")]


@pytest.mark.parametrize(
    "name", ["unspaced.txt", "huge.pdf", *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS)]
)
def test_a_huge_file_takes_memory_of_a_small_multiple_of_its_size(
    name: str, checkpoint: Path, idle: int, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(HUGE[name]())
    status, printed, peak = summarize(checkpoint, path)
    assert status == 0 and "only the first 256 of " in printed, printed
    assert peak - idle < 6 * SIZE + WINDOWS


@pytest.mark.nightly
def test_many_documents_take_no_more_memory_than_few(checkpoint: Path, idle: int, tmp_path: Path) -> None:
    path, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    line = json.dumps({"text": WORDS * 20_000})
    path.write_text(f"{line}\n" * 40)
    status, printed, peak = summarize(checkpoint, path, "--json", "-o", out)
    assert status == 0, printed
    assert len(out.read_text().splitlines()) == 40
    # A batch of eight and no more, though there are five times as many.
    assert peak - idle < 16 * len(line) + WINDOWS
