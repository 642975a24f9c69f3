"""What tensors take while something runs, in bytes, whatever the allocator does."""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Living(TorchDispatchMode):
    """Follows every storage from the operator that makes it until nobody holds it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {id(x.untyped_storage()) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, Tensor) and id(x.untyped_storage()) not in self._known | given:
                self._follow(x.untyped_storage())
        self.most = max(self.most, self.now)
        return out

    def _follow(self, storage: torch.UntypedStorage) -> None:
        key, size = id(storage), storage.nbytes()
        self._known.add(key)
        self.now += size

        def freed() -> None:
            self._known.discard(key)
            self.now -= size

        weakref.finalize(storage, freed)


def most_bytes(work: Callable[[], object]) -> int:
    """Return the most that tensors made by ``work``, backward passes included, take at any moment."""
    with _Living() as living:
        work()
    return living.most


def saved_bytes(work: Callable[[], object]) -> int:
    """Return what ``work`` keeps for the backward pass, each storage once, what modules own included."""
    storages: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no other takes a place

    def count(x: Tensor) -> Tensor:
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    with saved_tensors_hooks(count, lambda x: x):
        made = work()
    del made
    return sum(storage.nbytes() for storage in storages.values())
