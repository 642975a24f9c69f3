"""How much of the time a GPU computes, and in which kernels: training steps, and steps of writing.

    python lab/benchmarks/gpu_busy.py --out lab/benchmarks/results/gpu-busy-cuda.json

Documents of --source tokens. A training step is forward, cross entropy over 256 tokens of the summary, and backward,
under autocast to bfloat16; writing is the encoder and a beam search of 4 that writes 32 tokens, in float32, by token.
A GPU that computes for a small part of the time waits for Python, which starts its kernels.
"""

import statistics
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from side_by_side import clock, parser, record, texts
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Transformer

WRITTEN, BEAM, TARGET = 32, 4, 256


def busy(action: Callable[[], object], parts: int) -> dict[str, Any]:
    """Return milliseconds of an action (of five, the median), those that the GPU is busy, and its kernels, by part."""
    for _ in range(3):
        action()
    wall = statistics.median(clock(action, "cuda")[0] for _ in range(5))
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        action()
        torch.cuda.synchronize()
    took: Counter[str] = Counter()
    kernels = [event for event in found.events() if event.device_type.name == "CUDA"]
    for event in kernels:
        took[event.name[:80]] += event.device_time / 1e3
    return {
        "wall, ms": round(1e3 * wall / parts, 2),
        "busy, ms": round(took.total() / parts, 2),
        "kernels": round(len(kernels) / parts),
        "most, ms": {name: round(spent / parts, 3) for name, spent in took.most_common(8)},
    }


def train(model: Transformer, source: Tensor, target: Tensor) -> None:
    """Take a training step, without its update."""
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(source, target)
    F.cross_entropy(logits.flatten(0, 1).float(), target.flatten()).backward()
    model.zero_grad()


@torch.inference_mode()
def write(model: Transformer, source: Tensor) -> None:
    """Read documents and write about them."""
    BeamSearch(BEAM, min_len=WRITTEN, max_len=WRITTEN)(model, source)


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "gpu-busy", devices=False)
    made.set_defaults(device="cuda")
    made.add_argument("--models", nargs="+", default=["deep_blockwise", "deep_pyramidion"], metavar="PRESET")
    made.add_argument("--batches", type=int, nargs="+", default=[1, 8], help="documents (default: 1 8)")
    made.add_argument("--source", type=int, default=8192, help="tokens of each (default: 8192)")
    made.add_argument("--vocab-size", type=int, default=32768)
    args = made.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for name in args.models:
        torch.manual_seed(args.seed)
        model = build(preset(name), args.vocab_size).to(args.device)
        for batch in args.batches:
            source = texts(batch, args.source, args.vocab_size, args.device, args.seed)
            target = texts(batch, TARGET, args.vocab_size, args.device, args.seed + 1)
            kinds = {
                f"{name}, a training step of {batch}": (partial(train, model, source, target), 1),
                f"{name}, a step of writing for {batch}": (partial(write, model, source), WRITTEN),
            }
            for what, (action, parts) in kinds.items():
                model.train(parts == 1)
                found[what] = busy(action, parts)
                print(f"{what}: {found[what]['wall, ms']} ms, computes for {found[what]['busy, ms']} ms", flush=True)
    record(args, found=found)


if __name__ == "__main__":
    main()
