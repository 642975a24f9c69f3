"""Adafactor whose weights all have the learning rate, and whose weight decay can end."""

from argparse import ArgumentParser
from typing import Any

import torch
from fairseq.optim import LegacyFairseqOptimizer, register_optimizer
from fairseq.optim.adafactor import Adafactor, FairseqAdafactor


@register_optimizer("decaying_adafactor")
class FairseqDecayingAdafactor(FairseqAdafactor):
    """Adafactor as Jaszczur et al. 2021 trained with (Shazeer & Stern 2018, and their code).

    fairseq's ``adafactor`` with ``--scale-parameter`` multiplies the learning rate by the root mean square of a tensor,
    and takes the product for the next tensor's learning rate, so that all but the first hardly learn. Here each has the
    rate of the schedule. ``--weight-decay`` is the share of its weights that an update takes away, whatever the rate.

    Args:
        args: the options.
        params: what is trained.
    """

    def __init__(self, args: Any, params: Any) -> None:
        LegacyFairseqOptimizer.__init__(self, args)
        decay = args.weight_decay, args.weight_decay_updates
        self._optimizer = DecayingAdafactor(params, *decay, **self.optimizer_config)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        """Add the options."""
        FairseqAdafactor.add_args(parser)
        parser.add_argument(
            "--weight-decay-updates",
            type=int,
            default=0,
            help="updates in which the weight decay falls to 0, linearly; 0 for a constant one",
        )

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """What replaces the options in a checkpoint."""
        return {**super().optimizer_config, "weight_decay": 0.0}


class DecayingAdafactor(Adafactor):
    """The optimizer behind `FairseqDecayingAdafactor`.

    Args:
        params: what is trained.
        decay: share of each weight that an update takes away, below 1.
        decay_updates: updates in which it falls to 0; 0 for a constant one.
        options: of fairseq's Adafactor.
    """

    def __init__(self, params: Any, decay: float, decay_updates: int, **options: Any) -> None:
        super().__init__(params, **options)
        self._decay, self._decay_updates = decay, decay_updates
        self._rates: dict[int, float] = {}

    def step(self, closure: Any = None) -> Any:
        """Update all weights."""
        loss = None if closure is None else closure()
        self._rates = {id(group): group["lr"] for group in self.param_groups}
        with torch.no_grad():
            for weight in (weight for group in self.param_groups for weight in group["params"]):
                if weight.grad is not None:
                    weight.mul_(1 - self._share(self.state[weight].get("step", 0)))
        super().step()
        for group in self.param_groups:
            group["lr"] = self._rates[id(group)]
        return loss

    def _share(self, updates: int) -> float:
        """Return what the next update takes away, after so many."""
        return self._decay * (max(0.0, 1 - updates / self._decay_updates) if self._decay_updates else 1.0)

    def _get_lr(self, param_group: dict[str, Any], param_state: dict[str, Any]) -> float:
        # The size is that of the weights before the decay.
        before = {**param_state, "RMS": param_state["RMS"] / (1 - self._share(param_state["step"] - 1))}
        return float(super()._get_lr({**param_group, "lr": self._rates[id(param_group)]}, before))
