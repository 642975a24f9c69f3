"""A language model: an hourglass between an embedder and an output layer."""

from typing import NamedTuple

from torch import Tensor, nn

from pyramidions.nn.attention import Distances
from pyramidions.nn.boundaries import Boundaries, Segmentation, SupervisedBoundaries
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.hourglass import Hourglass, HourglassState, Shortened
from pyramidions.nn.output import Output
from pyramidions.nn.stack import Stack

_STD = 0.02


class LanguageModelCache:
    """What a language model keeps between cached steps of a batch of texts."""

    def __init__(self, state: HourglassState) -> None:
        self.state = state

    @property
    def length(self) -> int:
        """Tokens of each text that were read."""
        return self.state.written.length

    def select(self, rows: Tensor) -> None:
        """Keep the texts ``rows`` (B',), in that order; one may come several times, to go on in several ways."""
        self.state.select(rows)


class Features(NamedTuple):
    """What a language model reads in a text."""

    x: Tensor  # (B, T, D), the last layer's output
    # where segments end, of the outermost shortened part first; none of a cached step
    segmentations: tuple[Segmentation, ...]


class LanguageModel(nn.Module):
    """Predicts each token of a text from those before it (Nawrot et al. 2023).

    New weights are normal with a standard deviation of 0.02, around 1 in norms; biases are 0, and null groups normal
    with a standard deviation of 1. A ``norm`` is that of the last layer's output, in pre-norm models.
    """

    def __init__(
        self,
        embedder: Embedder,
        hourglass: Hourglass,
        stack: Stack,
        output: Output,
        norm: nn.Module | None = None,
        padding_idx: int = 1,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.hourglass = hourglass
        self.stack = stack
        self.norm = norm
        self.output = output
        self.padding_idx = padding_idx
        self.apply(_initialise)

    @property
    def boundaries(self) -> list[Boundaries]:
        """What marks where segments end, of the outermost shortened part first."""
        return [shortened.boundaries for shortened in self.hourglass.all_shortened()]

    def new_cache(self) -> LanguageModelCache:
        """Return an empty cache."""
        return LanguageModelCache(self.hourglass.new_state())

    def features(self, tokens: Tensor, cache: LanguageModelCache | None = None, start: int = 0) -> Features:
        """Return the last layer's output for tokens (B, T), padded on the right if at all.

        With a ``cache``, which is extended in place, they follow the tokens in it, unpadded, and segments are read when
        they end. Without, the first token has position ``start`` in its text.
        """
        if cache is None:
            padding_mask = tokens.eq(self.padding_idx)
            x, segmentations = self.hourglass(self.embedder(tokens), tokens, padding_mask, self.stack, start)
        else:
            x = self.hourglass.step(self.embedder(tokens, cache.length), tokens, None, self.stack, cache.state)
            segmentations = []
        return Features(x if self.norm is None else self.norm(x), tuple(segmentations))

    def mark(self, tokens: Tensor, start: int = 0) -> Segmentation | None:
        """Return where segments of tokens (B, T) end, as `features` returns it first; None without segments.

        Only the layers before the outermost shortened part are run.
        """
        padding_mask = tokens.eq(self.padding_idx)
        return self.hourglass.mark(self.embedder(tokens), tokens, padding_mask, self.stack, start)

    def logits(self, features: Tensor) -> Tensor:
        """Score the vocabulary: (B, T, D) -> (B, T, V)."""
        return self.output(features, self.embedder.tokens.weight)

    def forward(self, tokens: Tensor, cache: LanguageModelCache | None = None) -> Tensor:
        """Return the logits of the token after each of ``tokens``, (B, T, V); arguments as in `features`."""
        return self.logits(self.features(tokens, cache).x)

    @property
    def is_supervised(self) -> bool:
        """Whether boundaries after tokens learn from `boundary_targets`."""
        return any(isinstance(kind, SupervisedBoundaries) for kind in self.boundaries)

    def boundary_targets(self, logits: Tensor, marked: Tensor | None = None) -> Tensor | None:
        """Return where boundaries after tokens should be: (B, L), or None; as `Boundaries.targets`."""
        kinds = self.boundaries
        return kinds[0].targets(logits, marked) if kinds else None

    def boundary_loss(
        self, segmentations: tuple[Segmentation, ...], targets: Tensor | None, known: Tensor | None = None
    ) -> Tensor | None:
        """Return what boundaries add to the loss, in nats, summed over each text, or None; see `Boundaries.loss`."""
        losses = [kind.loss(each, targets, known) for kind, each in zip(self.boundaries, segmentations, strict=True)]
        added = [loss for loss in losses if loss is not None]
        return sum(added[1:], added[0]) if added else None


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=_STD)
    elif isinstance(module, nn.LayerNorm):
        nn.init.normal_(module.weight, 1.0, _STD)
    elif isinstance(module, Distances):
        nn.init.normal_(module.content_bias, std=_STD)
        nn.init.normal_(module.position_bias, std=_STD)
    elif isinstance(module, Shortened):
        nn.init.normal_(module.null_group)
    if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        nn.init.zeros_(module.weight[module.padding_idx])
