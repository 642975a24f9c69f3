"""What each attention kind keeps for its backward pass, by length: the curve must be a line.

    python lab/benchmarks/attention_memory.py --out lab/benchmarks/results/attention-memory

Counted are the bytes of the tensors that autograd saves in one forward pass of a batch of one (8 heads of 64, attention
dropout of 0.1), each storage once. "full, as a matrix" is full attention as it is written down, softmax and dropout of
the whole matrix of weights, for comparison.
"""

import argparse
import csv
import logging
from pathlib import Path

import torch

from pyramidions.nn.attention import ATTENTION, CoreAttention, Feature

HEADS, HEAD_DIM = 8, 64
MATRIX, MATRIX_LIMIT = "full, as a matrix", 8192  # beyond, it takes tens of gigabytes


def saved_bytes(kind: str, length: int) -> int:
    """Return the bytes that one forward pass saves."""
    attention = _as_a_matrix if kind == MATRIX else built(kind, length)
    q, k, v = (torch.randn(1, HEADS, length, HEAD_DIM, requires_grad=True) for _ in range(3))
    storages: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no address is counted for two

    def count(x: torch.Tensor) -> torch.Tensor:
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        attention(q, k, v)
    return sum(storage.nbytes() for storage in storages.values())


def built(kind: str, length: int) -> CoreAttention:
    """Return a kind with its default options for documents of up to ``length`` positions, in training mode."""
    known = {"num_heads": HEADS, "head_dim": HEAD_DIM, "embed_dim": HEADS * HEAD_DIM, "max_length": length}
    return ATTENTION.build(kind, {}, dropout=0.1, **known).train()


def _as_a_matrix(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = (q @ k.transpose(-1, -2) / q.size(-1) ** 0.5).softmax(dim=-1)
    return torch.nn.functional.dropout(weights, 0.1) @ v


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[2**p for p in range(10, 16)], help="1k to 32k")
    parser.add_argument("--out", type=Path, help="write OUT.csv and OUT.png")
    args = parser.parse_args()
    kinds = (*(kind for kind in ATTENTION.names if Feature.ITSELF in ATTENTION[kind].supports), MATRIX)
    rows = []
    for kind in kinds:
        for length in args.lengths:
            if kind == MATRIX and length > MATRIX_LIMIT:
                rows.append({"attention": kind, "length": length, "megabytes": "", "note": "not run: memory"})
                continue
            size = saved_bytes(kind, length) / 1e6
            rows.append({"attention": kind, "length": length, "megabytes": f"{size:.1f}", "note": ""})
            print(f"{kind:17} {length:6} {size:9.1f} MB", flush=True)
    if args.out is None:
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.5, 4))
    for kind in kinds:
        chosen = [r for r in rows if r["attention"] == kind and r["megabytes"]]
        axes.plot([r["length"] for r in chosen], [float(str(r["megabytes"])) for r in chosen], marker="o", label=kind)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("length")
    axes.set_ylabel("saved for the backward pass, MB")
    axes.legend()
    figure.tight_layout()
    figure.savefig(args.out.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
