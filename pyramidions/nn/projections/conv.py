"""Projections by convolutions over modules and tokens.

Beside the legend of `pyramidions.nn`: S modules of M numbers each, and F tokens that a filter sees.
"""

from typing import Annotated, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Count, EveryOther
from pyramidions.nn.multiplicative import Multiplicative, check_modules
from pyramidions.nn.projections.projections import PROJECTIONS, Projections, check_heads, split_heads
from pyramidions.nn.sublayer import Carried, LayerContext, State

#: modules that a filter sees, its own in the middle
Odd = Annotated[int, EveryOther(1)]


class ModuleConvolution(nn.Module):
    """As many filters as a module has numbers, each over some tokens and modules (Jaszczur et al. 2021, section 3.2).

    A vector is made of its own token and those before it. Beside the first and the last module are zeros.

    For few tokens it copies what each filter sees, and multiplies it with the filters. A convolution of torch would
    first bring them into an order of its own, which takes a CPU longer than reading them. Both compute the same.
    """

    def __init__(self, channels: int, kernel: int, length_kernel: int) -> None:
        super().__init__()
        self._length_kernel, self._window, self._beside = length_kernel, kernel * channels, kernel // 2 * channels
        self._channels = channels
        #: (F, modules, M channels, M filters)
        self.weight = nn.Parameter(torch.empty(length_kernel, kernel, channels, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        # Glorot: as many numbers see one as are seen.
        bound = (3 / (channels * length_kernel * kernel)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, windows: Tensor | None = None) -> Tensor:
        """Filter: (B, F - 1 + L, D), with what comes before the first token -> (B, L, D); ``windows`` may be given."""
        if windows is None and not self.sees_few(x):
            return self.convolved(x)
        return self.multiplied(x, windows)

    def sees_few(self, x: Tensor) -> bool:
        """Return whether one product is faster than a convolution."""
        # As measured: 16 modules of 64 numbers take as long either way with some 16 sequences of one token.
        return x.numel() <= 8 * self._channels**2

    def windows(self, x: Tensor) -> Tensor:
        """Copy what each filter sees: (B, F - 1 + L, D) -> (B * L * S, F * kernel * M)."""
        padded = F.pad(x, (self._beside, self._beside)) if self._beside else x
        # Windows over modules, then over tokens: (B, L, S, kernel * M, F)
        seen = padded.unfold(2, self._window, self._channels).unfold(1, self._length_kernel, 1)
        return seen.mT.reshape(-1, self._length_kernel * self._window)

    def multiplied(self, x: Tensor, windows: Tensor | None = None) -> Tensor:
        """Compute `forward` by one product; ``windows`` are those of ``x``, if they were copied."""
        windows = self.windows(x) if windows is None else windows
        # (F * kernel * M, M)
        made = torch.addmm(self.bias, windows, self.weight.flatten(0, 2))
        return made.view(x.size(0), -1, x.size(2))

    def convolved(self, x: Tensor) -> Tensor:
        """Compute `forward` by a convolution."""
        # (B, L, D) -> (B, L, S, M) -> (B, M, L, S), the order that convolutions ask for
        image = x.unflatten(-1, (-1, self._channels)).permute(0, 3, 1, 2)
        filtered = F.conv2d(image, self.weight.permute(3, 2, 0, 1), self.bias, padding=(0, self.weight.size(1) // 2))
        return filtered.permute(0, 2, 3, 1).flatten(2)


def filtered(x: Tensor, *filters: ModuleConvolution) -> list[Tensor]:
    """Filter ``x`` by some that see as many tokens and modules; what they see is copied once."""
    first = filters[0]
    if not first.sees_few(x):
        return [each(x) for each in filters]
    windows = first.windows(x)
    return [each(x, windows) for each in filters]


class Filters(NamedTuple):
    """What makes queries, keys and values; all see as many tokens."""

    queries: ModuleConvolution
    keys: nn.Module
    values: nn.Module


class ConvProjections(Projections):
    """Vectors are rows of an image, tokens x modules, that convolutions filter (Jaszczur et al. 2021, section 3.2).

    A row is filtered with those before it alone, in an encoder, too, so that padding on the right is never read.
    Modules need not be heads: filtered rows are vectors again, which heads share.

    Args:
        averages: queries and keys are both the mean of what the filters of queries and of keys make.
        out_proj: of what heads have mixed, one token at a time; None if `output` is an error.
        memory_proj: makes the rows of keys and values, where they come from another sequence; None for ``in_proj``.
        dense_memory: keys and values are made of vectors of another sequence as they are, each of its own alone.
    """

    def __init__(
        self,
        num_heads: int,
        filters: Filters,
        averages: bool,
        in_proj: nn.Module,
        out_proj: nn.Module | None,
        memory_proj: nn.Module | None = None,
        dense_memory: bool = False,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.averages = averages
        self.in_proj = in_proj
        self.memory_proj = memory_proj
        self.dense_memory = dense_memory
        self.q_proj, self.k_proj, self.v_proj = filters
        self.out_proj = out_proj
        self.look_back = filters.queries.weight.size(0) - 1

    def queries(self, x: Tensor) -> Tensor:
        return self._heads(self._queries(self._from_zeros(self.in_proj(x))))

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x
        if not self.dense_memory:
            rows = self._from_zeros((self.in_proj if self.memory_proj is None else self.memory_proj)(x))
        return self._heads(self._keys(rows)), self._heads(self.v_proj(rows))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self._all(self._from_zeros(self.in_proj(x)))

    def new_state(self) -> State | None:
        return Carried() if self.look_back else None

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self._all(self._continued(x, context, state), len(x))
        return q, k, v

    def step_queries(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        return self._heads(self._queries(self._continued(x, context, state)), len(x))

    def _from_zeros(self, rows: Tensor) -> Tensor:
        """Put zeros before the first row: (B, L, D) -> (B, F - 1 + L, D)."""
        return F.pad(rows, (0, 0, self.look_back, 0))

    def _continued(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Put before new positions (B, WT, D) those that a hypothesis read last, keep its last: (BW, F - 1 + T, D)."""
        # (B, WT, D) -> (BW, T, D)
        rows = self.in_proj(x).unflatten(1, (context.hypotheses, -1)).flatten(0, 1)
        if context.new_padding_mask is not None:
            rows = rows.masked_fill(context.new_padding_mask[..., None], 0.0)
        if not isinstance(state, Carried):
            return rows
        rows = self._from_zeros(rows) if state.value is None else torch.cat([state.value, rows], dim=1)
        state.value = rows[:, -self.look_back :]
        return rows

    def _queries(self, rows: Tensor) -> Tensor:
        q: Tensor = self.q_proj(rows)
        return (q + self.k_proj(rows)) / 2 if self.averages else q

    def _keys(self, rows: Tensor) -> Tensor:
        if self.averages:
            return self._queries(rows)
        return self.k_proj(rows)

    def _all(self, rows: Tensor, documents: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of ``rows``; ``documents`` as in `_heads`."""
        q, k = filtered(rows, self.q_proj, cast(ModuleConvolution, self.k_proj))
        if self.averages:
            q = k = self._heads((q + k) / 2, documents)
        else:
            q, k = self._heads(q, documents), self._heads(k, documents)
        return q, k, self._heads(self.v_proj(rows), documents)

    def _heads(self, x: Tensor, documents: int | None = None) -> Tensor:
        """(BW, T, D) -> (B, H, WT, E), of so many ``documents`` B; None for one hypothesis of each."""
        # The hypotheses of a document follow each other.
        return split_heads(x if documents is None else x.unflatten(0, (documents, -1)).flatten(1, 2), self.num_heads)


@PROJECTIONS.register("conv")
def conv_projections(
    embed_dim: int,
    num_heads: int,
    modules: Count | None = None,
    kernel: Odd = 3,
    length_kernel: Count = 3,
    value_kernel: Odd = 1,
    shares_query_key: bool = False,
    joins_heads: bool = True,
) -> ConvProjections:
    """Filter the vectors themselves, and what heads have mixed (Jaszczur et al. 2021, figure 5).

    Args:
        modules: S; None for the number of heads.
        kernel: modules that a filter sees, its own in the middle.
        length_kernel: tokens that it sees, its own last; that of the output sees its own alone.
        value_kernel: modules that a filter of values sees.
    """
    size = _module_size(embed_dim, num_heads, modules)
    return ConvProjections(
        num_heads,
        _filters(size, kernel, length_kernel, value_kernel),
        shares_query_key,
        in_proj=nn.Identity(),
        out_proj=ModuleConvolution(size, kernel, 1) if joins_heads else None,
    )


@PROJECTIONS.register("multiplicative_conv")
def multiplicative_conv_projections(
    embed_dim: int,
    num_heads: int,
    modules: Count | None = None,
    kernel: Odd = 3,
    length_kernel: Count = 3,
    value_kernel: Odd = 1,
    shares_query_key: bool = False,
    joins_heads: bool = True,
    crosses: bool = False,
    dense_memory: bool = False,
) -> ConvProjections:
    """Filter what one multiplicative layer makes of the vectors; heads are joined without a projection.

    This is the sparse QKV layer (Jaszczur et al. 2021, section 3.2, figure 4b). Their public code has it in
    cross-attention with ``dense_memory``.

    Args:
        crosses: keys and values come from another sequence than queries, which has a multiplicative layer of its own.
        dense_memory: a linear layer each makes keys and values of that sequence.
        embed_dim, num_heads, modules, kernel, length_kernel, value_kernel, shares_query_key, joins_heads: as in
            `conv_projections`, whose errors are raised; or ``dense_memory`` without another sequence.
    """
    if dense_memory and not crosses:
        raise ValueError("`dense_memory` of multiplicative_conv is for `cross_projections` alone, but is true.")
    size = _module_size(embed_dim, num_heads, modules)
    filters = _filters(size, kernel, length_kernel, value_kernel)
    if dense_memory:
        filters = filters._replace(keys=_dense(embed_dim), values=_dense(embed_dim))

    def multiplicative() -> Multiplicative:
        return Multiplicative(embed_dim, embed_dim // size, embed_dim)

    return ConvProjections(
        num_heads,
        filters,
        shares_query_key,
        in_proj=multiplicative(),
        out_proj=nn.Identity() if joins_heads else None,
        memory_proj=multiplicative() if crosses and not dense_memory else None,
        dense_memory=dense_memory,
    )


def _dense(embed_dim: int) -> nn.Linear:
    layer = nn.Linear(embed_dim, embed_dim)
    nn.init.xavier_uniform_(layer.weight)
    return layer


def _module_size(embed_dim: int, num_heads: int, modules: int | None) -> int:
    check_heads(embed_dim, num_heads)
    return check_modules("embed_dim", embed_dim, num_heads if modules is None else modules)


def _filters(size: int, kernel: int, length_kernel: int, value_kernel: int) -> Filters:
    return Filters(
        ModuleConvolution(size, kernel, length_kernel),
        ModuleConvolution(size, kernel, length_kernel),
        ModuleConvolution(size, value_kernel, length_kernel),
    )
