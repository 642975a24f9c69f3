"""How fast summaries are written in float32, bfloat16 and int8, and how good they are.

    python lab/benchmarks/precision.py MODEL sumpubmed/test.jsonl.xz --out lab/benchmarks/results/precision-cpu.json
    python lab/benchmarks/precision.py MODEL sumpubmed/test.jsonl.xz --preset deep_pyramidion --documents 16

MODEL is a trained summarizer: a checkpoint, a folder of checkpoints, or an export. The file of JSON lines has documents
(`article`) and their summaries (`abstract`).

The precisions take turns; a turn is all documents, from text to text. Products of large matrices in float32 and in
bfloat16 are timed in the same turns. Where this machine makes at least twice as many in bfloat16, summaries in bfloat16
are asked to be written 1.6 times as fast as in float32; elsewhere nothing is asked.

ROUGE is computed against the references, with the difference to float32 and its 95% interval (paired bootstrap over
documents), and against the summaries in float32. With --preset, a network of this architecture with random weights
takes the place of the trained one: it has speed, but no quality, and ROUGE is left out.
"""

import argparse
import json
import lzma
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from side_by_side import Figure, MatrixProducts, finish, parser, ratio, take_turns

from lab.timing import Timed
from pyramidions.inference import SavedModel, Summarizer, load_model
from pyramidions.inference.precision import BFLOAT16, FLOAT32, INT8, PRECISIONS, multiplies
from pyramidions.models import PRESETS, build, preset
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import Scores, metrics_of, score_documents
from pyramidions.text.tokenizer import PAD

TARGET = 1.6  # times as many documents a second, where the machine has
TWICE = 2.0  # times as many products a second
ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def read(path: Path, count: int) -> list[dict[str, str]]:
    """Return the first records of a file of JSON lines."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, count)]


def with_random_weights(model: SavedModel, name: str, seed: int) -> SavedModel:
    """Return a model of a preset that reads and writes at most as much as ``model``, with its tokenizer."""
    torch.manual_seed(seed)
    config = preset(name, max_source_positions=model.max_source_positions)
    tokenizer = model.tokenizer
    network = build(config, tokenizer.vocab_size, PAD, tokenizer.marker_id, model.max_target_positions)
    return replace(model, transformer=network.eval(), config=config)


class Writing:
    """Summaries of all documents in one precision; the last turn's are kept."""

    def __init__(self, summarizer: Summarizer, articles: list[str], options: dict[str, Any]) -> None:
        self.summaries: list[str] = []
        self._summarizer, self._articles, self._options = summarizer, articles, options

    def __call__(self) -> None:
        """Take a turn."""
        self.summaries = [found.text for found in self._summarizer.summarize(self._articles, **self._options)]


def scored(summaries: list[str], references: list[str]) -> Scores:
    """Score summaries, each against one reference."""
    return score_documents(Examples(summaries, [(each,) for each in references]), metrics_of(["rouge"]))


def quality(written: dict[str, list[str]], references: list[str]) -> dict[str, Any]:
    """Return ROUGE of each precision against the references, and beside float32."""
    exact = scored(written[FLOAT32], references)
    found: dict[str, Any] = {FLOAT32: {name: exact.estimates[name]._asdict() for name in ROUGE}}
    for precision in written.keys() - {FLOAT32}:
        scores, summaries = scored(written[precision], references), written[precision]
        differences = scores.compare(exact)
        beside = scored(summaries, written[FLOAT32]).estimates["rougeL"]
        found[precision] = {
            **{name: scores.estimates[name]._asdict() for name in ROUGE},
            "minus_float32": {name: differences[name]._asdict() for name in ROUGE},
            "within_the_interval_of_float32": {
                name: exact.estimates[name].low <= scores.estimates[name].mean <= exact.estimates[name].high
                for name in ROUGE
            },
            "rougeL_against_float32": beside._asdict(),
            "same_summaries": sum(a == b for a, b in zip(summaries, written[FLOAT32], strict=True)) / len(summaries),
        }
    return {name: found[name] for name in written}


def print_quality(found: dict[str, Any]) -> None:
    """Print a line for each precision."""
    for precision, about in found.items():
        line = f"{precision}: ROUGE-L {about['rougeL']['mean']:.2f}"
        if precision != FLOAT32:
            by = about["minus_float32"]["rougeL"]
            line += f" ({by['difference']:+.2f} [{by['low']:+.2f}, {by['high']:+.2f}])"
            line += f", {about['rougeL_against_float32']['mean']:.1f} against the summaries in float32"
            line += f", {100 * about['same_summaries']:.0f}% are the same"
        print(line)


def rates_of(products: dict[str, MatrixProducts], timed: dict[str, Timed]) -> dict[str, float]:
    """Return the machine's GFLOP/s in each precision."""
    return {name: 2e-9 * each.multiplications / timed[_products(name)].median for name, each in products.items()}


def _products(precision: str) -> str:
    return f"products in {precision}"


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "precision", repeats=3)
    made.add_argument("model", type=Path, help="a trained summarizer")
    made.add_argument("file", type=Path, help=".jsonl, or .jsonl.xz, of {article, abstract}")
    made.add_argument("--documents", type=int, default=200, help="the first of the file (default: 200)")
    made.add_argument("--batch-size", type=int, default=8, help="documents read at once (default: 8)")
    made.add_argument("--beam", type=int, help="(default: the model's)")
    made.add_argument("--min-len", type=int, help="(default: the model's)")
    made.add_argument("--max-len", type=int, help="(default: the model's)")
    made.add_argument("--preset", choices=sorted(PRESETS), metavar="NAME", help="time this, with random weights")
    made.add_argument("--multiplications", type=float, help="of a turn of products (default: enough to be measured)")
    return made.parse_args()


def main() -> None:
    """Run the benchmark."""
    args = arguments()
    records = read(args.file, args.documents)
    articles, references = [each["article"] for each in records], [each["abstract"] for each in records]
    model = load_model(args.model)
    if args.preset:
        model = with_random_weights(model, args.preset, args.seed)
    options = {name: getattr(args, name) for name in ("batch_size", "beam", "min_len", "max_len")}
    # int8 is for CPUs.
    names = PRECISIONS if args.device == "cpu" else (FLOAT32, BFLOAT16)
    summarizers = {name: Summarizer(model, args.device, name) for name in names}
    writing = {name: Writing(summarizer, articles, options) for name, summarizer in summarizers.items()}
    dtypes = {FLOAT32: torch.float32, BFLOAT16: torch.bfloat16}
    products = {name: MatrixProducts(args.device, dtype, args.multiplications) for name, dtype in dtypes.items()}
    timed = take_turns(
        {**writing, **{_products(name): each for name, each in products.items()}}, args.repeats, device=args.device
    )
    rates = rates_of(products, timed)
    faster = rates[BFLOAT16] / rates[FLOAT32]
    for name, rate in rates.items():
        print(f"matrix products in {name}: {rate:.0f} GFLOP/s")
    device = torch.device(args.device)
    instructions = {name: multiplies(name, device) for name in (BFLOAT16, INT8)}
    print("instructions: " + ", ".join(f"{name} {told}" for name, told in instructions.items()))
    speeds = {name: len(records) / timed[name].median for name in names}
    for name, speed in speeds.items():
        print(f"{name}: {speed:.3f} documents/s")
    figures = [
        ratio(
            f"documents a second, {name} / {FLOAT32}",
            timed[FLOAT32],
            timed[name],
            TARGET if name == BFLOAT16 and faster >= TWICE else None,
        )
        for name in names
        if name != FLOAT32
    ]
    rouge = None
    if args.preset is None:
        rouge = quality({name: each.summaries for name, each in writing.items()}, references)
        print_quality(rouge)
    figures.append(Figure("GFLOP/s of matrix products, bfloat16 / float32", faster, faster, faster))
    finish(
        args,
        figures,
        timed,
        documents=len(records),
        parameters=sum(weights.numel() for weights in model.transformer.parameters()),
        documents_a_second=speeds,
        gflops=rates,
        instructions=instructions,
        threads=torch.get_num_threads(),
        rouge=rouge,
    )


if __name__ == "__main__":
    main()
