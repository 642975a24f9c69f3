"""What selects sentences by their vectors: the role, the registry of kinds, and the kinds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Count
from pyramidions.base.registry import Registry
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.options import Within

#: Chooses the next unit of each document: from the log-probabilities (B, U + 1) and what is chosen (B, U + 1), of which
#: the last stands for the end, to numbers (B,).
Pick: TypeAlias = Callable[[Tensor, Tensor], Tensor]


class Steps(NamedTuple):
    """What was selected from each document, step by step; after the end, everything is 0."""

    chosen: Tensor  # (B, S), the number of a unit; U is the end
    log_probs: Tensor  # (B, S, U + 1), of all units and of the end; -inf where a unit cannot be chosen
    values: Tensor  # (B, S), the rewards that the critic expects from each step on
    real: Tensor  # (B, S), True up to the end


class Selector(nn.Module, ABC):
    """Selects units of a document by their vectors."""

    #: whether it selects them one by one, in `steps`
    points: ClassVar[bool] = False

    def steps(self, x: Tensor, known: Tensor, pick: Pick) -> Steps:
        """Choose units as ``pick`` does until all documents are done; raise ValueError if it rates all at once."""
        raise ValueError(f"{type(self).__name__} rates all units at once.")

    @abstractmethod
    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        """Return scores, the higher the sooner; -inf for what is not selected: (B, U, D) -> (B, U), full precision.

        Units must be ``known`` (B, U): there is a vector for them, and they may be selected.
        """


SELECTOR: Registry[Selector] = Registry("selector")


@SELECTOR.register("independent")
class IndependentSelector(Selector):
    """Rates each unit by a linear layer on its vector (Liu and Lapata 2019, section 3.1)."""

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        made = nn.Linear(embed_dim, 1)
        # By the names that checkpoints have.
        self.weight, self.bias = made.weight, made.bias

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        weight: Tensor = self.weight
        bias: Tensor = self.bias
        if not (torch.is_autocast_enabled(x.device.type) or self.training):
            # Half precision would give many sentences the same score.
            x = full_precision(x)
            weight, bias = weight.to(x.dtype), bias.to(x.dtype)
        return F.linear(x, weight, bias).squeeze(-1).masked_fill(~known, -torch.inf)


def draw(log_probs: Tensor, chosen: Tensor) -> Tensor:
    """Pick a unit, or the end, at random: a `Pick`."""
    return torch.multinomial(log_probs.exp(), 1).squeeze(1)


@SELECTOR.register("pointer")
class PointerSelector(Selector):
    """Chooses units one by one until it chooses the end (Chen and Bansal 2018, sections 2.1.2 and 3.2).

    A recurrent network (LSTM) reads the vectors of what was chosen. Its state attends to all units (a glimpse, Vinyals
    et al. 2016), and what it finds points to the next one: equations (1) to (4) of the paper. The end is one more unit,
    with a vector of its own. A critic predicts the rewards to come from what was found.

    Scores are in the order of the most probable choices. In a long document no sentence is likely, and the end would
    come first if it were chosen like a unit. It comes once it is likely, as in MemSum (Gu et al. 2022), but never
    first.

    Args:
        max_units: at most so many units are chosen.
        stop_threshold: the probability from which on the end is chosen.
    """

    points = True

    def __init__(self, embed_dim: int, max_units: Count = 60, stop_threshold: Within = 0.5) -> None:
        super().__init__()
        self.max_units = max_units
        self.stop_threshold = stop_threshold
        self.end = nn.Parameter(torch.empty(embed_dim).uniform_(-(embed_dim**-0.5), embed_dim**-0.5))
        self.start = nn.Parameter(torch.empty(embed_dim).uniform_(-(embed_dim**-0.5), embed_dim**-0.5))
        self.recurrence = nn.LSTMCell(embed_dim, embed_dim)
        self.glimpse = _AdditiveAttention(embed_dim)
        self.point = _AdditiveAttention(embed_dim)
        self.critic = nn.Linear(embed_dim, 1)

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        """Return scores in the order of choice, 0, -1, -2 ...: (B, U)."""
        steps = self.steps(x, known, self.best)
        order = -torch.arange(steps.chosen.size(1), dtype=steps.log_probs.dtype, device=x.device)
        order = order.expand_as(steps.chosen)
        scores = x.new_full((len(x), x.size(1) + 1), -torch.inf, dtype=order.dtype)
        # What comes after the end is put where the end stands, which is cut off.
        place = steps.chosen.masked_fill(~steps.real, x.size(1))
        return scores.scatter(1, place, order)[:, :-1]

    def best(self, log_probs: Tensor, chosen: Tensor) -> Tensor:
        """Pick the most probable unit, of equal ones the first, or the end if it is likely: a `Pick`."""
        end = log_probs.size(1) - 1
        units = F.pad(log_probs[:, :-1], (0, 1), value=-torch.inf)
        best, place = units.max(dim=1)
        stops = (log_probs[:, -1].exp() >= self.stop_threshold) & chosen.any(dim=1)
        return place.masked_fill(stops | best.isinf(), end)

    def steps(self, x: Tensor, known: Tensor, pick: Pick) -> Steps:
        """Choose units until all documents are done; arguments as in `Selector.steps`."""
        with torch.autocast(x.device.type, enabled=False):
            return self._steps(x.to(self.end.dtype), known, pick)

    def _steps(self, x: Tensor, known: Tensor, pick: Pick) -> Steps:
        x = torch.cat([x, self.end.expand(len(x), 1, -1)], dim=1)
        open_ = torch.cat([known, known.new_ones(len(x), 1)], dim=1)
        # Padding, which holds whatever the encoder left there, must not reach the sums.
        x, end = x.masked_fill(~open_[..., None], 0), known.size(1)
        seen, keys, pointed = open_, self.glimpse.keys(x), self.point.keys(x)
        chosen = torch.zeros_like(open_)
        state = x.new_zeros(len(x), x.size(2)), x.new_zeros(len(x), x.size(2))
        read = self.start.expand(len(x), -1)
        running = known.new_ones(len(x))
        steps: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        while bool(running.any()) and len(steps) <= self.max_units:
            state = self.recurrence(read, state)
            weights = self.glimpse(keys, state[0]).masked_fill(~seen, -torch.inf).softmax(dim=1)
            # (B, U + 1) x (B, U + 1, D) -> (B, D)
            glimpsed = torch.einsum("bu,bud->bd", weights, keys)
            only_end = torch.zeros_like(open_).index_fill(1, _index(end, x), True)
            allowed = open_ if len(steps) < self.max_units else only_end
            # In half precision, many units would be equally probable.
            scores = full_precision(self.point(pointed, glimpsed)).masked_fill(~allowed, -torch.inf)
            log_probs = scores.log_softmax(dim=1)
            picked = pick(log_probs.detach(), chosen)
            value = full_precision(self.critic(glimpsed.detach()).squeeze(1))
            steps.append((picked, log_probs, value, running))
            here = torch.zeros_like(open_).scatter(1, picked[:, None], True)
            chosen = chosen | here
            running = running & (picked != end)
            # The end may be chosen again by documents that are done.
            open_ = open_ & ~here.index_fill(1, _index(end, x), False)
            read = x.gather(1, picked[:, None, None].expand(-1, 1, x.size(2))).squeeze(1)
        picks, log_probs, values, real = (torch.stack(each, dim=1) for each in zip(*steps, strict=True))
        kept = real[..., None]
        return Steps(picks.masked_fill(~real, 0), torch.where(kept, log_probs, 0), values.masked_fill(~real, 0), real)


class _AdditiveAttention(nn.Module):
    """Scores keys by v · tanh(W_k key + W_q query) (Bahdanau et al. 2015)."""

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.key = nn.Linear(embed_dim, embed_dim, bias=False)
        self.query = nn.Linear(embed_dim, embed_dim)
        self.score = nn.Linear(embed_dim, 1, bias=False)

    def keys(self, x: Tensor) -> Tensor:
        """Return the keys of units, once for all steps: (B, U, D)."""
        return self.key(x)

    def forward(self, keys: Tensor, query: Tensor) -> Tensor:
        """Return the scores of keys (B, U, D) for a query (B, D): (B, U)."""
        return self.score(torch.tanh(keys + self.query(query)[:, None])).squeeze(-1)


def _index(place: int, x: Tensor) -> Tensor:
    return torch.tensor([place], device=x.device)
