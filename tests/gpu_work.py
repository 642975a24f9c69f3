"""What a GPU would have to do: kernels that are launched, and times that the host waits for it.

Counted on the CPU, where the same operators run. A kernel is an operator that computes or copies; views and
allocations are none. The host waits wherever it reads a value or a size that depends on values.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

#: Operators of the host's own, of which a GPU sees nothing.
_NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "set_", "resize_"}
#: Operators whose result's size, or whose result itself, the host reads.
_WAITS = {"_local_scalar_dense", "equal", "is_nonzero", "nonzero", "unique_consecutive", "masked_select", "_unique2"}


class _Waits(TorchFunctionMode):
    """Counts what no operator tells of: lists made of tensors, and tensors made of lists."""

    def __init__(self, found: Counter[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.tolist:
            self.found["tolist"] += 1
        if func in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(args[1], list):
            self.found["indexed by a list"] += 1
        return func(*args, **(kwargs or {}))


class GpuWork(TorchDispatchMode):
    """Counts, while it is entered, ``kernels`` and ``waits`` by name."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self._functions = _Waits(self.waits)

    def __enter__(self) -> "GpuWork":
        self._functions.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._functions.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name in _WAITS:
            self.waits[name] += 1
        elif name in ("index", "index_put_") and any(i is not None and i.dtype == torch.bool for i in args[1]):
            self.waits["indexed by a mask"] += 1
        if not func.is_view and name not in _NO_KERNEL | {"_local_scalar_dense"}:
            self.kernels[name] += 1
        return func(*args, **(kwargs or {}))


def work_of(action: Callable[[], object]) -> GpuWork:
    """Return what ``action`` would have a GPU do."""
    with GpuWork() as work:
        action()
    return work
