"""A pointer that finds a token only through the vector that it is in, so that rows with it measure poolings."""

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Count
from pyramidions.nn.output import OUTPUT, PointerOutput
from pyramidions.nn.output.pointer import Pointer, PointerMemory, token_scores
from pyramidions.nn.provenance import Provenance

MEMBERS = "lab.members"
_DEEPEST = 30.0  # how far below the best token the score of another may be, so that no vector is without members


class MemberPointer(Pointer):
    """Chooses a vector by its key, and then among its members by their embeddings."""

    def __init__(self, embed_dim: int, start: float, token_dim: int) -> None:
        super().__init__(embed_dim, start, token_dim)
        self.token_query = None
        self.member_query = nn.Linear(embed_dim, min(embed_dim, token_dim))

    def forward(self, features: Tensor, memory: PointerMemory) -> tuple[Tensor, Tensor]:
        attention, _, gate = self.read(features, memory)
        member_query, made_of = self.member_query(features), memory.origins.made_of
        with torch.autocast(features.device.type, enabled=False):
            scores = token_scores(member_query, memory)
            likely = (scores - scores.amax(-1, keepdim=True)).clamp(min=-_DEEPEST).exp()
            total = summed_by_vector(made_of, likely).masked_fill(attention == 0, 1.0)
            return likely * made_of.of(attention / total.clamp(min=torch.finfo(total.dtype).tiny)), gate


class MemberOutput(PointerOutput):
    """`PointerOutput`, with another choice among tokens.

    With q', k' and e as there, and how much w_ki of each token x_i is in each vector:

        s_i = q'(h) . k'(e(x_i)) / sqrt(d)
        c_i = sum_k a_k w_ki exp(s_i) / sum_j w_kj exp(s_j)
    """

    def __init__(self, embed_dim: int, vocab_size: int, token_dim: Count = 64) -> None:
        super().__init__(embed_dim, vocab_size)
        self.pointer = MemberPointer(embed_dim, 1.0, token_dim)


def summed_by_vector(made_of: Provenance, x: Tensor) -> Tensor:
    """Sum up what positions have, (B, T, L), for the vectors that are made of them, by weight: (B, T, K)."""
    if made_of.members is None:
        return x @ made_of.weights.mT
    members = made_of.members.flatten(1)[:, None].expand(-1, x.size(1), -1)
    each = x.gather(2, members).unflatten(2, made_of.members.shape[1:])
    return (each * made_of.weights[:, None]).sum(-1)


def register() -> None:
    """Register the output once. Importing this module does not: tests of all kinds would see it."""
    if MEMBERS not in OUTPUT.names:
        OUTPUT.register("members")(MemberOutput)
