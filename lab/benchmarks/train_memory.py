"""How much memory a training step takes, by length: the curve must be a line.

    python lab/benchmarks/train_memory.py --out lab/benchmarks/results/train-memory-cpu
    python lab/benchmarks/train_memory.py --models longformer_lm \\
        --lengths 2048 4096 8192 16384 32768 --out lab/benchmarks/results/language-model-memory-cpu

Figures that OUT.csv has already are not taken again: an interrupted run goes on.

One document and 256 tokens of its summary, or one text of 27 kinds of characters; dropout as in the preset. Forward and
backward, each in a process of its own: the peak of its memory less what it held before the step (weights and the
program), gradients included. The C library is set to give freed tensors back (MALLOC_MMAP_THRESHOLD_): by default it
keeps those of up to 32 MB, and the peak is then partly its own. On a GPU it is the peak of what tensors take, less the
weights.
"""

import argparse
import csv
import io
import json
import logging
import shlex
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from peaks import peak, peak_of_process
from side_by_side import EOS, PAD, texts

from pyramidions.base.environment import commit, hardware, versions
from pyramidions.files.atomic import atomic_file
from pyramidions.models import LANGUAGE_MODEL_PRESETS, build, build_language_model, language_model_preset, preset

MODELS = ("deep_pyramidion", "deep_blockwise")
#: Symbols of text8, and the four special ones
CHARACTERS = 31
OUT = "out of memory"
COLUMNS = ("model", "checkpoint_activations", "length", "megabytes")


def peak_of_step(name: str, length: int, checkpointed: bool, args: argparse.Namespace) -> float:
    """Return what one step takes in this process, in 10^6 bytes."""
    torch.manual_seed(1)
    if name in LANGUAGE_MODEL_PRESETS:
        config = language_model_preset(name, checkpoint_activations=checkpointed)
        reader = build_language_model(config, CHARACTERS, PAD).to(args.device).train()
        text = texts(1, length + 1, CHARACTERS, args.device)
        return peak(
            lambda: F.cross_entropy(reader(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward(), args.device
        )
    model = build(preset(name, checkpoint_activations=checkpointed), args.vocab_size, PAD).to(args.device).train()
    source = texts(1, length, args.vocab_size, args.device)
    target = texts(1, args.target, args.vocab_size, args.device)

    def step() -> None:
        logits = model(source, F.pad(target[:, :-1], (1, 0), value=EOS))
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()

    return peak(step, args.device)


def measure(args: argparse.Namespace) -> list[dict[str, object]]:
    """Run a process for each model, length and way that --out lacks; return all figures."""
    rows = read(args.out)
    done_before = {(row["model"], row["checkpoint_activations"], row["length"]) for row in rows}
    for name in args.models:
        for checkpointed in (False, True):
            for length in args.lengths:
                if (name, checkpointed, length) in done_before:
                    continue
                command = ["--one", name, "--lengths", length, "--device", args.device]
                command += ["--target", args.target, "--vocab-size", args.vocab_size]
                found = peak_of_process([*command, *(["--checkpoint-activations"] if checkpointed else [])])
                size = OUT if found is None else f"{found:.0f}"
                rows.append(dict(zip(COLUMNS, (name, checkpointed, length, size), strict=True)))
                write(rows, args.out)
                print(f"{name:16} {'checkpointed' if checkpointed else '':12} {length:6} {size:>8} MB", flush=True)
    return rows


def read(out: Path | None) -> list[dict[str, object]]:
    """Return what an interrupted run has left."""
    if out is None or not out.with_suffix(".csv").exists():
        return []
    with out.with_suffix(".csv").open(newline="") as file:
        return [
            {**row, "checkpoint_activations": row["checkpoint_activations"] == "True", "length": int(row["length"])}
            for row in csv.DictReader(file)
        ]


def write(rows: list[dict[str, object]], out: Path | None) -> None:
    """Keep the figures so far."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out.with_suffix(".csv")) as file:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
        file.write(text.getvalue().encode())


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Draw megabytes over length."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.5, 4))
    for number, name in enumerate(dict.fromkeys(str(r["model"]) for r in rows)):
        for checkpointed in (False, True):
            chosen = [r for r in rows if r["model"] == name and r["checkpoint_activations"] is checkpointed]
            chosen = [r for r in chosen if r["megabytes"] != OUT]
            label = f"{name}, --checkpoint-activations" if checkpointed else name
            lengths, sizes = [r["length"] for r in chosen], [float(str(r["megabytes"])) / 1000 for r in chosen]
            axes.plot(lengths, sizes, "--o" if checkpointed else "-o", color=f"C{number}", label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("tokens, or characters of a language model")
    axes.set_ylabel("peak of a training step, GB")
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--lengths", type=int, nargs="+", default=[2**p for p in range(13, 17)], help="8k to 64k")
    names = (*MODELS, *LANGUAGE_MODEL_PRESETS)
    parser.add_argument("--models", nargs="+", choices=names, default=MODELS)
    parser.add_argument("--target", type=int, default=256, help="tokens of a summary (default: 256)")
    parser.add_argument("--vocab-size", type=int, default=32768)
    parser.add_argument("--out", type=Path, help="write OUT.csv, OUT.png and OUT.json")
    parser.add_argument("--one", choices=names, help="print the figure of this model, in this process")
    parser.add_argument("--checkpoint-activations", action="store_true", help="for --one")
    args = parser.parse_args()
    if args.one:
        print(peak_of_step(args.one, args.lengths[0], args.checkpoint_activations, args))
        return
    rows = measure(args)
    if args.out is not None:
        about = {
            "command": shlex.join(["python", "lab/benchmarks/train_memory.py", *sys.argv[1:]]),
            "commit": commit(),
            "versions": versions(),
            "hardware": hardware(args.device),
        }
        args.out.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")
        draw(rows, args.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
