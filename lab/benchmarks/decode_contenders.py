"""What the benchmark of sparse parts times: steps of a decoder and of its parts, output layers, products.

Each contender says what a pass takes of the processor's time, and how many bytes of weights it reads.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from contenders import EOS, FIRST, seconds_of
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pyramidions.nn import Decoder
from pyramidions.nn.decoder.captured import CapturedSteps
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.output import Output
from pyramidions.nn.sublayer import LayerContext, Memory

_ATEN = torch.ops.aten
#: operators that read some rows of a matrix, and the places of the matrix and of the rows among their arguments
_READ_ROWS = {
    _ATEN._embedding_bag_per_sample_weights_backward: (1, 2),
    _ATEN.index_select: (0, 2),
    _ATEN.embedding: (0, 1),
    _ATEN._embedding_bag: (0, 1),
    _ATEN._embedding_bag_forward_only: (0, 1),
}


class _Read(TorchDispatchMode):
    """Counts the bytes of weights that operators read: rows where rows are read, else each weight once."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        super().__init__()
        self._weights = {weight.untyped_storage().data_ptr(): weight.nbytes for weight in weights}
        self._whole: set[int] = set()
        self._rows = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        places = _READ_ROWS.get(func.overloadpacket)
        if places is not None:
            matrix, rows = (args[place] for place in places)
            self._rows += rows.numel() * matrix.size(1) * matrix.element_size()
        elif not func.is_view:
            given = {x.untyped_storage().data_ptr() for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
            self._whole |= given & self._weights.keys()
        return func(*args, **(kwargs or {}))

    @property
    def bytes(self) -> int:
        """All of them."""
        return self._rows + sum(self._weights[each] for each in self._whole)


_CAPTURES = 3


class Stepper:
    """A decoder that writes one sequence, token by token; where it `captures` the second step, all others replay it."""

    def __init__(self, decoder: Decoder, vectors: int, captures: bool = False) -> None:
        self._decoder = decoder
        self._steps = CapturedSteps(math.inf)
        self._memory = (Memory(torch.randn(1, vectors, decoder.embedder.tokens.embedding_dim)),)
        self._begin()
        with _Read(decoder.parameters()) as read:
            self._step(FIRST)
        #: bytes of weights that a step reads
        self.bytes = read.bytes
        #: seconds that it takes to capture a step and to replay it twice, which torch uses to optimise it; each time
        self.captured_in: list[float] = []
        if captures:
            self._steps.patience = 0
            for _ in range(_CAPTURES):
                self._steps.graphs.clear()
                self._begin()
                self.captured_in.append(3 * seconds_of(lambda: self._step(FIRST), 3))

    def _begin(self) -> None:
        self._decoder.captured_steps = self._steps
        self._cache = self._decoder.new_cache()
        self._step(EOS)

    def _step(self, token: int) -> None:
        self._decoder(torch.tensor([[token]]), self._memory, self._cache)

    def seconds(self, steps: int) -> float:
        """Return the processor's seconds of a step, after one that projects the memory."""
        self._begin()
        return seconds_of(lambda: self._step(FIRST), steps)


class Parts:
    """The same sublayer of all layers alone, in turn, in cached steps: without norm and residual connection."""

    def __init__(self, decoder: Decoder, name: str, vectors: int) -> None:
        layers = [cast(Layer, layer) for layer in decoder.layers]
        self._functions = [cast(Sublayer, layer.sublayers[name]).function for layer in layers]
        width = decoder.embedder.tokens.embedding_dim
        self._x = torch.randn(1, 1, width)
        self._context = LayerContext(None, (Memory(torch.randn(1, vectors, width)),))
        self._begin()
        with _Read(decoder.parameters()) as read:
            self._step()
        self.bytes = read.bytes

    def _begin(self) -> None:
        self._states = [function.new_state() for function in self._functions]
        self._step()

    def _step(self) -> None:
        x = self._x
        for function, state in zip(self._functions, self._states, strict=True):
            x = self._x + function.step(x, self._context, state)

    def seconds(self, steps: int) -> float:
        """Return the processor's seconds of a step, after one that projects the memory."""
        self._begin()
        return seconds_of(self._step, steps)


class Outputs:
    """Output layers of one kind, one after the other: more than any cache holds."""

    def __init__(self, layers: Sequence[Output], width: int) -> None:
        self._layers, self._x = layers, torch.randn(1, 1, width)
        self._embedding = torch.empty(0, width)  # these layers have weights of their own
        with _Read(weight for layer in layers for weight in layer.parameters()) as read:
            self._run()
        self.bytes = read.bytes

    def _run(self) -> None:
        for layer in self._layers:
            layer(self._x, self._embedding)

    def seconds(self, steps: int) -> float:
        """Return the processor's seconds of all layers."""
        self._run()
        return seconds_of(self._run, steps)


class MatrixVectors:
    """Products of `count` matrices (4 width, width) with a vector: the rate at which weights can be read."""

    def __init__(self, width: int, count: int) -> None:
        self._matrices = [torch.randn(4 * width, width) for _ in range(count)]
        self._x = torch.randn(1, width)
        self.bytes = sum(matrix.nbytes for matrix in self._matrices)

    def _run(self) -> None:
        for matrix in self._matrices:
            F.linear(self._x, matrix)

    def seconds(self, steps: int) -> float:
        """Return the processor's seconds of reading all matrices."""
        self._run()
        return seconds_of(self._run, steps)


Reader = Stepper | Parts | Outputs | MatrixVectors
