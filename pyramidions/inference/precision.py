"""Chooses the precision in which a trained model computes, by what the machine has."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

from pyramidions.base.arguments import OneOf, checked
from pyramidions.base.device import TorchDevice
from pyramidions.base.errors import UserError

if TYPE_CHECKING:
    from pyramidions.nn.reduced import Network

FLOAT32, BFLOAT16, INT8, AUTO = "float32", "bfloat16", "int8", "auto"
PRECISIONS = (FLOAT32, BFLOAT16, INT8)
#: What a user chooses.
PrecisionName = Annotated[str, OneOf((AUTO, *PRECISIONS))]
_INSTRUCTIONS = {
    BFLOAT16: ("avx512_bf16", "amx_bf16", "bf16"),
    INT8: ("avx512_vnni", "avx_vnni", "amx_int8", "i8mm", "dot"),
}
#: D of a model whose products are too small to be faster in bfloat16 on a CPU: with 128, a CPU that multiplies large
#: matrices 4.6 times as fast wrote 1.08 times as fast (lab/benchmarks/README.md).
_SMALL = 256


class Precision(NamedTuple):
    """The precision in which a model computes."""

    name: str  # "float32", "bfloat16" or "int8"
    said: str  # a sentence for the user: which it is, and what that has to do with the machine


@checked
def found_precision(precision: PrecisionName, device: TorchDevice, embed_dim: int | None = None) -> Precision:
    """Return the precision to compute in, by what a user chooses; ``embed_dim`` is None where it is not known yet."""
    if precision == INT8 and device.type != "cpu":
        raise UserError(f"`precision` int8 is for CPUs, but the device is {str(device)!r}.")
    if precision == FLOAT32:
        return Precision(FLOAT32, "Computes in float32.")
    if precision == AUTO and device.type == "cpu" and embed_dim is not None and embed_dim < _SMALL:
        return Precision(FLOAT32, f"Computes in float32: a model of {embed_dim} dimensions gains little in bfloat16.")
    wanted = BFLOAT16 if precision == AUTO else precision
    told = multiplies(wanted, device)
    where = "this CPU" if device.type == "cpu" else f"the device {str(device)!r}"
    if told:
        return Precision(wanted, f"Computes in {wanted}, for which {where} has instructions.")
    why = f"{where} has no instructions for {wanted}"
    if told is None:
        why = f"torch does not tell whether {where} has instructions for {wanted}"
    if precision == AUTO:
        return Precision(FLOAT32, f"Computes in float32: {why}.")
    return Precision(wanted, f"Computes in {wanted}, which may be slower than float32: {why}.")


def multiplies(precision: str, device: TorchDevice) -> bool | None:
    """Return whether a device has instructions for products in bfloat16 or int8; None where torch does not tell."""
    import torch

    if device.type == "cuda":
        # ROCm's GPUs number their generations otherwise.
        return None if torch.version.hip else torch.cuda.get_device_capability(device.index) >= (8, 0)
    if device.type != "cpu":
        return None
    # Older versions of torch do not tell.
    told: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    names = [name for name in _INSTRUCTIONS[precision] if name in told]
    return any(told[name] for name in names) if names else None


def in_precision(network: "Network", precision: Precision) -> "Network":
    """Return a network in evaluation mode in a precision: itself in float32, else a copy."""
    import torch

    from pyramidions.nn.reduced import in_bfloat16, in_int8

    if precision.name == FLOAT32:
        return network.eval()
    if precision.name == BFLOAT16:
        return in_bfloat16(network)
    try:
        return in_int8(network, 127 if multiplies(INT8, torch.device("cpu")) else 63)  # see `Int8Linear`
    except ValueError as error:
        raise UserError(str(error)) from None
