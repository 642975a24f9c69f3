"""Multiplicative projections."""

from pyramidions.base.arguments import Count
from pyramidions.nn.multiplicative import Multiplicative, check_modules
from pyramidions.nn.projections.projections import PROJECTIONS, SeparateProjections, check_heads


@PROJECTIONS.register("multiplicative")
class MultiplicativeProjections(SeparateProjections):
    """One multiplicative layer for each (Jaszczur et al. 2021, section 3.2).

    Modules need not be heads: a layer's output is a vector as any other, which heads share.

    Args:
        modules: S; None for the number of heads.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        modules: Count | None = None,
        shares_query_key: bool = False,
        joins_heads: bool = True,
    ) -> None:
        super().__init__()
        check_heads(embed_dim, num_heads)
        modules = num_heads if modules is None else modules
        check_modules("embed_dim", embed_dim, modules)
        self.num_heads = num_heads
        self.q_proj = Multiplicative(embed_dim, modules, embed_dim)
        self.k_proj = None if shares_query_key else Multiplicative(embed_dim, modules, embed_dim)
        self.v_proj = Multiplicative(embed_dim, modules, embed_dim)
        self.out_proj = Multiplicative(embed_dim, modules, embed_dim) if joins_heads else None
