"""What only a card can tell: training steps, writing and windows beside their targets, and how busy the GPU is.

    python lab/benchmarks/gpu.py --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/gpu.py --device cpu --tiny --repeats 2

Steps (bfloat16, 256 tokens of summary) and writing (32 tokens, beam 4) compare deep_blockwise with deep_pyramidion. A
GPU that is little busy waits for Python. Windows stand beside FlexAttention, or on a CPU beside attention of all pairs.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from contenders import TINY, Timed, finish, parser, ratio, take_turns, texts
from figures import Entry, figure
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.profiler import ProfilerActivity, profile
from train_step import Step
from writers import forced

from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.nn.attention import SlidingWindowAttention
from pyramidions.nn.decoder.static import Record, as_cuda_graph
from pyramidions.nn.functional.kernels import FLEX, use_kernels

STEPS, WRITING = {2: 1.3, 16: 2.0}, {1: 2.5, 8: 2.5, 64: 2.5}  # documents at once, and what pooling should gain
BUSY, SLOWER, WINDOW = 100 / 1.3, 1 / 1.2, 512


@torch.inference_mode()
def write(model: Transformer, source: Tensor, record: Record | None = None) -> None:
    """Read documents and write about them."""
    model.decoder.record = record
    forced(beam=4, tokens=32)(model.eval(), source)


def attend(kind: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Take a forward and a backward pass."""
    torch.autograd.grad(kind(*inputs).sum(), inputs)


def kernels(work: Callable[[], object]) -> list[float]:
    """Return the seconds of each kernel that the GPU runs."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        work()
        torch.cuda.synchronize()
    return [event.device_time / 1e6 for event in found.events() if event.device_type.name == "CUDA"]


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "gpu")
    made.set_defaults(device="cuda")
    made.add_argument("--tiny", action="store_true", help="models 16 wide and 64 tokens, to try the program")
    args = made.parse_args()
    length, vocab_size, fields = (64, 100, TINY) if args.tiny else (8192, 32768, {})
    device, on_card = args.device, args.device == "cuda"
    models = [build(preset(f"deep_{name}", **fields), vocab_size).to(device) for name in ("blockwise", "pyramidion")]
    # The slow one's work, that of the fast one, and what their ratio should be.
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object], float | None]] = {}
    name = "deep_blockwise / deep_pyramidion"
    for batch, least in STEPS.items():
        source, target = (texts(batch, tokens, vocab_size, device) for tokens in (length, 256))
        slow, fast = (Step(model, model, source, target, torch.bfloat16) for model in models)
        pairs[f"a step of {batch}, {name}"] = slow, fast, least
    for batch, least in WRITING.items():
        slow, fast = (partial(write, model, texts(batch, length, vocab_size, device)) for model in models)
        pairs[f"writing of {batch}, {name}"] = slow, fast, least
        if on_card:
            pairs[f"writing of {batch}, deep_pyramidion / with graphs"] = fast, partial(fast, as_cuda_graph), None
    dtype = torch.bfloat16 if on_card else torch.float32
    inputs = [torch.randn(1, 12, length, 64, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
    rival: Callable[..., Tensor] = F.scaled_dot_product_attention
    if on_card:
        near = create_block_mask(lambda b, h, i, j: (i - j).abs() <= WINDOW // 2, None, None, length, length, device)
        rival = partial(torch.compile(flex_attention, dynamic=False), block_mask=near)
    by_flex = SlidingWindowAttention(WINDOW)
    use_kernels(by_flex, FLEX)
    slow, fast, flex = (partial(attend, kind, *inputs) for kind in (rival, SlidingWindowAttention(WINDOW), by_flex))
    pairs[f"{'FlexAttention' if on_card else 'all pairs'} / windows"] = slow, fast, SLOWER if on_card else None
    if on_card:
        pairs["windows / windows by FlexAttention"] = fast, flex, None
    figures: list[Entry] = []
    timed: dict[str, Timed] = {}
    for what, (slow, fast, least) in pairs.items():
        took = take_turns({f"{what}: first": slow, f"{what}: second": fast}, args.repeats, 2, device)
        figures.append(ratio(what, *took.values(), least))
        timed |= took
        if on_card:
            each = kernels(fast)
            percent = 100 * sum(each) / took[f"{what}: second"].median
            least = BUSY if "writing" in what else None
            figures.append(figure(f"{what}: busy in the second", percent, target=least, unit="%"))
            figures.append(figure(f"{what}: kernels of the second", len(each), unit=""))
    finish(args, figures, timed)


if __name__ == "__main__":
    main()
