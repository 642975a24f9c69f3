"""Who speaks: the first tokens of each unit of the text, as they are before the encoder."""

import torch
from torch import Tensor, nn


class Roles:
    """Embeds the beginning of units, such as the speaker's name in front of a turn.

    Args:
        marker: the token at which a unit starts. It tells nothing and is passed over.
        name_end: the token behind the name, if a unit has one: who speaks is what stands before it, and nobody where it
            is missing. With None any first tokens say it.
    """

    def __init__(
        self, tokens: Tensor, unit: Tensor, embedding: nn.Embedding, marker: int, name_end: int | None = None
    ) -> None:
        self._tokens = tokens
        self._unit = unit
        self._embedding = embedding
        self._marker = marker
        self._is_name = torch.ones_like(tokens, dtype=torch.bool)
        if name_end is not None:
            last, ends = tokens.size(1) - 1, tokens.eq(name_end)
            # (B, L), where the next name ends, or behind the text
            end = torch.arange(last + 1, device=tokens.device).masked_fill(~ends, last + 1)
            end = end.flip(1).cummin(dim=1).values.flip(1)
            self._is_name = ~ends & (end <= last) & unit.gather(1, end.clamp(max=last)).eq(unit)

    def __call__(self, units: Tensor, count: int) -> Tensor:
        """Return the mean embedding of the first ``count`` tokens of units (B, K), if so many: (B, K, D); 0 for -1."""
        # Numbers never fall, but for the -1 of padding behind them: (B, K), where each unit starts.
        starts = torch.searchsorted(self._unit.cummax(dim=1).values.contiguous(), units.contiguous())
        last = self._unit.size(1) - 1
        starts = starts + self._tokens.gather(1, starts.clamp(max=last)).eq(self._marker)
        # (B, K, 1) + (R) -> (B, K, R)
        places = starts[..., None] + torch.arange(count, device=units.device)
        within = places.clamp(max=last).flatten(1)
        belongs = self._unit.gather(1, within).view_as(places).eq(units[..., None]) & (places <= last)
        belongs &= self._is_name.gather(1, within).view_as(places)
        belongs = (belongs & (units >= 0)[..., None])[..., None]
        vectors = self._embedding(self._tokens.gather(1, within).view_as(places))
        return vectors.masked_fill(~belongs, 0.0).sum(dim=2) / belongs.sum(dim=2).clamp(min=1)
