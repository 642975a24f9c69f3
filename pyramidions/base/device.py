"""Finds the device that a model runs on."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pyramidions.base.errors import UserError

if TYPE_CHECKING:
    import torch


@runtime_checkable
class TorchDevice(Protocol):
    """A `torch.device`: who annotates with this need not import torch."""

    @property
    def type(self) -> str:
        """Such as "cuda"."""

    @property
    def index(self) -> int | None:
        """Its number, if it has one."""


#: What arguments take: "cpu", "cuda:1", or a device of torch's.
Device = str | TorchDevice


def found_device(device: Device | None) -> "torch.device":
    """Return a device that works; for None, a GPU if there is one."""
    import torch

    try:
        device = ("cuda" if torch.cuda.is_available() else "cpu") if device is None else device
        usable = torch.device(str(device))
        torch.zeros(1, device=usable).item()
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError, ImportError, TypeError, ValueError):
        gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        here = ", ".join(["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])])
        raise UserError(f"`device` must be one that torch finds here ({here}), but is {str(device)!r}.") from None
    return usable


def has_values(x: "torch.Tensor") -> bool:
    """Say whether a tensor has values: without, on the meta device, a model costs the most that it may."""
    return not x.is_meta
