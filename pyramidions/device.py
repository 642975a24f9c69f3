"""Finds the device that a model runs on."""

import torch

from pyramidions.errors import UserError


def found_device(device: str | torch.device | None) -> torch.device:
    """Return a device that works; for None, a GPU if there is one.

    Raises:
        UserError: there is no such device.
    """
    try:
        found = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=found).item()
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError, ImportError, TypeError, ValueError):
        gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        here = ", ".join(["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])])
        raise UserError(f"`device` must be one that torch finds here ({here}), but is {str(device)!r}.") from None
    return found
