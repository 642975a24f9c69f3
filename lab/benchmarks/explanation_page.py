"""How fast the page of an explanation opens, and how large it is.

    python lab/benchmarks/explanation_page.py --out lab/benchmarks/results/explanation-page.json

A document of 8,192 tokens and a summary of 512 by deep_pyramidion with random weights, opened again and again in
headless Chromium (Debian: chromium and chromium-driver), from the address to the page that can be used.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch
from selenium import webdriver
from side_by_side import EOS, PAD, Figure, finish, parser, texts

from lab.timing import Timed
from pyramidions.inference import Explanation, Summary, html_page
from pyramidions.inference.explanation import trace
from pyramidions.models import build, preset

SECONDS, BYTES = 2.0, 3_000_000
READY = "return document.documentElement.dataset.ready === 'yes'"


def page(length: int, target: int, vocab_size: int, tiny: bool) -> str:
    """Return the page of a made-up document; a token's text is as long as those of a trained vocabulary are."""
    width = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2} if tiny else {}
    model = build(preset("deep_pyramidion", max_source_positions=length, **width), vocab_size, PAD).eval()
    document, summary = texts(1, length, vocab_size)[0], texts(1, target, vocab_size, seed=2)[0]
    read, written = ([*(f" w{token}" for token in tokens[:-1].tolist()), ""] for tokens in (document, summary))
    about = Summary("".join(written).strip(), -1.0, target, length, length)
    return html_page(Explanation(about, read, written, trace(model, document, summary, EOS)), "made up")


def browser() -> webdriver.Chrome:
    """Start Chromium without a screen."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("This benchmark needs Chromium and its driver (Debian: chromium and chromium-driver).")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(argument)
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "explanation-page", devices=False)
    made.add_argument("--source", type=int, default=8192, help="tokens of the document (default: 8192)")
    made.add_argument("--target", type=int, default=512, help="tokens of the summary (default: 512)")
    made.add_argument("--vocab-size", type=int, default=32768)
    made.add_argument("--tiny", action="store_true", help="a model 16 wide, to try the program")
    args = made.parse_args()
    torch.manual_seed(args.seed)
    text = page(args.source, args.target, args.vocab_size, args.tiny)
    seconds = []
    with tempfile.TemporaryDirectory() as folder, browser() as opened:
        path = Path(folder) / "page.html"
        path.write_text(text, encoding="utf-8")
        for _ in range(args.repeats):
            opened.get("about:blank")
            begin = time.perf_counter()
            opened.get(path.as_uri())
            while not opened.execute_script(READY):
                time.sleep(0.01)
            seconds.append(time.perf_counter() - begin)
    took, size = Timed(seconds, None), len(text.encode())
    turns = [SECONDS / each for each in seconds]
    figures = [
        Figure(f"{SECONDS:g} s over the time until it can be used", SECONDS / took.median, min(turns), max(turns), 1.0),
        Figure(f"{BYTES:,} bytes over its size", BYTES / size, BYTES / size, BYTES / size, 1.0),
    ]
    print(f"{size:,} bytes; {took.median:.2f} s until it can be used")
    finish(args, figures, {"page": took}, bytes=size)


if __name__ == "__main__":
    main()
