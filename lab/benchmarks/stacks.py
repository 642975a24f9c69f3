"""Training steps of encoders that are alike but for their stack: what they keep, and take at their peak."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from peaks import allocated, peak, peaks_of_process
from side_by_side import Figure
from torch import Tensor, nn

from pyramidions.models import build, preset

STACKS = ("plain", "recomputing", "reversible")


def step_of(
    stack: str, layers: int, tokens: Tensor, seed: int, **fields: Any
) -> tuple[nn.Module, Callable[[], Tensor]]:
    """Return a pre-norm encoder, and its forward pass over ``tokens`` (B, L) to a loss.

    Args:
        stack: its kind.
        layers: their number.
        tokens: of texts without padding.
        seed: of the weights.
        fields: of the config, beside those.
    """
    torch.manual_seed(seed)
    fixed = {"normalize_before": True, "encoder_layers": layers, "decoder_layers": 1, "stack": stack}
    model = build(preset("vanilla", **fixed, **fields), int(tokens.max()) + 1).encoder.train()
    nothing, lengths = torch.zeros_like(tokens, dtype=torch.bool), [tokens.size(1)] * tokens.size(0)
    return model, lambda: model(tokens, nothing, lengths).memories[0].x.square().mean()


def memory_of(model: nn.Module, forward: Callable[[], Tensor]) -> tuple[float, float]:
    """Return the memory of a step without weights and their gradients, in 10^6 bytes; on a CPU.

    Returns:
        What is kept between the forward and the backward pass, and the peak of both.
    """
    # As when gradients of several batches are added up: there from the beginning.
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    # What is loaded at the first use is no layer's, nor are the library's buffers for large matrix products.
    torch.mm(torch.ones(512, 512), torch.ones(512, 512))
    few = torch.full((1, 8), 5)
    model(few, few == 0).memories[0].x.mean().backward()
    before, after = allocated(), 0

    def step() -> None:
        nonlocal after
        loss = forward()
        after = allocated()
        loss.backward()

    top = peak(step)
    return (after - before) / 1e6, top


def by_layers(layers: Sequence[int], sizes: Sequence[object]) -> tuple[list[dict[str, Any]], list[Figure]]:
    """Measure each stack with each number of layers; return the megabytes, and what a further layer adds on average.

    Each measurement is a process that runs this program with `--one STACK --layers N` and prints what `memory_of`
    returns.

    Args:
        layers: their numbers, two at least.
        sizes: further arguments of the program.
    """
    rows: list[dict[str, Any]] = []
    for stack in STACKS:
        for count in layers:
            kept, top = peaks_of_process(["--one", stack, "--layers", count, *sizes])
            rows.append({"stack": stack, "layers": count, "kept": kept, "peak": top})
            print(f"{stack:12} {count:3} layers, kept {kept:9.3f} MB, peak {top:9.1f} MB", flush=True)
    figures = []
    most, least = max(layers), min(layers)
    for measure, exact in (("kept", 0.0), ("peak", 1.0)):
        found = {(row["stack"], row["layers"]): row[measure] for row in rows}
        # A peak counts to a megabyte.
        further = {stack: max(found[stack, most] - found[stack, least], exact) / (most - least) for stack in STACKS}
        for stack, target in (("plain", 50), ("recomputing", 4)):
            value = further[stack] / further["reversible"]
            figures.append(Figure(f"a further layer, {measure}, {stack} / reversible", value, value, value, target))
    return rows, figures
