"""Activation memory of a training step, in closed form: what autograd keeps from the forward for the backward pass."""

from collections import Counter
from collections.abc import Container

from pyramidions.errors import UserError
from pyramidions.measure.pooling_memory import MODELLED_POOLING, SCORER_MEMORY, pooling_memory, size
from pyramidions.measure.shapes import LayerRun, Lengths, Part, PoolerRun, encoder_runs, memory_length, outline
from pyramidions.models import PyramidionConfig
from pyramidions.models.fields import parse_options, parse_pooling_lengths


class NotModelledError(UserError):
    """A config whose activation memory has no closed form."""


def activations(config: PyramidionConfig, lengths: Lengths) -> dict[Part, int]:
    """Count the bytes of all tensors that one training step saves for its backward pass, parameters excluded.

    In float32, with fused attention: of a softmax only its log-sum-exp is kept (on the CPU with attention dropout not
    even that, but it is counted). A tensor that several operations save is counted once, for the part that saves it
    first. What the forward pass holds for a moment, gradients and the optimizer's state come on top. Held against
    torch on the CPU; kernels of a GPU may round a log-sum-exp's length up.

    Args:
        config: the model's shape.
        lengths: of the batch of full-length documents.

    Raises:
        NotModelledError: a kind or an option that has no closed form here.
        UserError: a config that breaks a rule, or a length below 1.
    """
    lengths.check()
    model = outline(config, lengths.vocab_size)
    _refuse_unknown(config)
    runs = list(encoder_runs(config, model.encoder, lengths.source))
    saved = _Saved(config, lengths.batch)
    first = runs[0]
    assert isinstance(first, LayerRun)
    saved.embedding(first.blocks * first.queries)
    for run in runs:
        if isinstance(run, LayerRun):
            saved.encoder_layer(run)
    memory = memory_length(model.encoder, runs, lengths.source)
    last = runs[-1]
    saved.memory(memory, last.blocks * last.queries if isinstance(last, LayerRun) else memory)
    saved.decoder(lengths.target, memory, lengths.vocab_size)
    if poolers := [run for run in runs if isinstance(run, PoolerRun)]:
        saved.bytes[Part.POOLING] = pooling_memory(config, poolers, lengths.source, lengths.batch)
    return {part: saved.bytes[part] for part in Part}


def _refuse_unknown(config: PyramidionConfig) -> None:
    known: dict[str, Container[str]] = {
        "self_attention": ("full", "blockwise"),
        "cross_attention": ("full",),
        "feed_forward": ("dense",),
        "residual": ("plain",),
    }
    if parse_pooling_lengths(config.pooling_lengths, config.encoder_layers):
        known |= {"pooling": MODELLED_POOLING, "scorer": SCORER_MEMORY}
        if not parse_options(config.pooling_args, "pooling_args").get("sort", True):
            raise NotModelledError("The activation memory of `pooling_args` without sort is not modelled.")
        if parse_options(config.scorer_args, "scorer_args").get("dropout", 0):
            raise NotModelledError("The activation memory of `scorer_args` with dropout is not modelled.")
    if config.checkpoint_activations:
        raise NotModelledError("The activation memory of `checkpoint_activations` is not modelled.")
    for name, kinds in known.items():
        if (kind := getattr(config, name)) not in kinds:
            raise NotModelledError(f"The activation memory of `{name}` {kind} is not modelled.")


class _Saved:
    """Adds up what is saved, part by part; positions are those of one document.

    Args:
        config: the model's shape.
        batch: B.
    """

    def __init__(self, config: PyramidionConfig, batch: int) -> None:
        self.config = config
        self.batch = batch
        self.bytes: Counter[Part] = Counter()

    def add(self, part: Part, *, floats: int = 0, indices: int = 0) -> None:
        self.bytes[part] += self.batch * size(floats, indices)

    def dropped(self, part: Part, values: int, probability: float) -> None:
        if probability > 0:
            self.bytes[part] += self.batch * values  # a byte each

    def embedding(self, tokens: int) -> None:
        self.add(Part.EMBEDDING_AND_NORMS, indices=tokens)
        self.dropped(Part.EMBEDDING_AND_NORMS, tokens * self.config.embed_dim, self.config.dropout)

    def norm(self, positions: int, padded: int) -> None:
        # What is normalised, as it lies in its blocks; its mean and its standard deviation.
        self.add(Part.EMBEDDING_AND_NORMS, floats=padded * self.config.embed_dim + 2 * positions)

    def around(self, positions: int) -> None:
        """A residual connection."""
        self.norm(positions, positions)
        self.dropped(Part.EMBEDDING_AND_NORMS, positions * self.config.embed_dim, self.config.dropout)

    def attention(self, part: Part, queries: int, keys: int, masked_keys: int) -> None:
        """Queries, keys, values, output and log-sum-exp; the padding mask as numbers."""
        dim = self.config.embed_dim
        self.add(part, floats=2 * (queries + keys) * dim + queries * self.config.num_heads + masked_keys)

    def feed_forward(self, part: Part, positions: int) -> None:
        inner, options = self.config.ffn_embed_dim, parse_options(self.config.feed_forward_args, "feed_forward_args")
        probability = self.config.activation_dropout
        # ReLU, dropout and the second layer keep one tensor; GELU keeps its input, and dropout after it a mask.
        gelu = options.get("activation") == "gelu"
        self.add(part, floats=positions * (self.config.embed_dim + (1 + gelu) * inner))
        if gelu:
            self.dropped(part, positions * inner, probability)

    def encoder_layer(self, run: LayerRun) -> None:
        positions = run.blocks * run.queries
        self.add(Part.ENCODER_PROJECTIONS, floats=positions * self.config.embed_dim)
        self.attention(Part.ENCODER_ATTENTION, positions, positions, positions if run.padded else 0)
        self.around(positions)
        self.feed_forward(Part.ENCODER_FEED_FORWARD, positions)
        self.around(positions)

    def memory(self, positions: int, padded: int) -> None:
        if self.config.normalize_before:
            self.norm(positions, padded)
            padded = positions
        # Cut out of the blocks of several documents, it is made one piece by every projection anew.
        pieces = 2 * self.config.decoder_layers * positions if self.batch > 1 and padded != positions else padded
        self.add(Part.MEMORY_PROJECTIONS, floats=pieces * self.config.embed_dim)

    def decoder(self, target: int, memory: int, vocab_size: int) -> None:
        dim = self.config.embed_dim
        self.embedding(target)
        for _ in range(self.config.decoder_layers):
            self.add(Part.DECODER_PROJECTIONS, floats=2 * target * dim)
            self.attention(Part.DECODER_ATTENTION, target, target, 0)
            self.around(target)
            self.attention(Part.CROSS_ATTENTION, target, memory, 0)
            self.around(target)
            self.feed_forward(Part.DECODER_FEED_FORWARD, target)
            self.around(target)
        if self.config.normalize_before:
            self.norm(target, target)
        # What the output layer reads, log-probabilities and the tokens to predict.
        self.add(Part.OUTPUT, floats=target * (dim + vocab_size), indices=target)
