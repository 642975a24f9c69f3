"""Adafactor whose weights all have the learning rate, and whose weight decay can end."""

import ast
from argparse import ArgumentParser
from typing import Any

import torch
from fairseq.optim import LegacyFairseqOptimizer, register_optimizer
from fairseq.optim.adafactor import Adafactor, FairseqAdafactor

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError


@register_optimizer("decaying_adafactor")
class FairseqDecayingAdafactor(FairseqAdafactor):
    """Adafactor as Jaszczur et al. 2021 trained with (Shazeer & Stern 2018, and their code).

    fairseq's ``adafactor`` with ``--scale-parameter`` multiplies the learning rate by the root mean square of a tensor,
    and takes the product for the next tensor's learning rate, so that all but the first hardly learn. Here each has the
    rate of the schedule, times its own size alone. ``--weight-decay`` is the share of its weights that an update takes
    away, whatever the rate.
    """

    # The share is too small for weights of 16 bits.
    supports_memory_efficient_fp16 = False

    def __init__(self, args: Any, params: Any) -> None:
        LegacyFairseqOptimizer.__init__(self, args)
        if not 0 <= args.weight_decay < 1:
            raise UserError(f"--weight-decay must be at least 0 and below 1, but is {args.weight_decay}.")
        if args.weight_decay_updates < 0:
            raise UserError(f"--weight-decay-updates must be at least 0, but is {args.weight_decay_updates}.")
        for name in ("relative_step", "warmup_init"):
            if getattr(args, name):
                raise UserError(f"{flag_of(name)} is not for decaying_adafactor, whose rate is that of the schedule.")
        decay = args.weight_decay, args.weight_decay_updates
        self._optimizer = DecayingAdafactor(params, *decay, **self.optimizer_config)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
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
        args = self.args
        return {
            "lr": args.lr[0],
            "eps": _two_numbers(args.adafactor_eps),
            "clip_threshold": args.clip_threshold,
            "decay_rate": args.decay_rate,
            "beta1": args.beta1,
            "weight_decay": 0.0,
            "scale_parameter": args.scale_parameter,
            "relative_step": False,
            "warmup_init": False,
        }


def _two_numbers(given: str) -> tuple[float, float]:
    try:
        first, second = map(float, ast.literal_eval(given))
    except (ValueError, TypeError, SyntaxError):
        raise UserError(f"--adafactor-eps must be two numbers such as (1e-30,1e-3), but is {given!r}.") from None
    return first, second


class DecayingAdafactor(Adafactor):
    """The optimizer behind `FairseqDecayingAdafactor`."""

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
