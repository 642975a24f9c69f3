"""What no part can be or read is refused by the name of the argument, with its value."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from small_parts import DIM, HEADS, SETTING, VOCABULARY, layer, vectors
from torch import nn
from whole_models import MARKER, PAD, batch, tiny

from pyramidions.base.registry import Registry
from pyramidions.models import build_extractor, extractor_preset
from pyramidions.nn import BeamSearch, Sampling, SentenceRanker
from pyramidions.nn.attention import ATTENTION, HeposAttention, LinformerAttention, RelativeAttention
from pyramidions.nn.boundaries import BOUNDARIES, HiddenStates, Segmentation
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.functional.topk import gumbel_topk, hard_topk, iterative_topk, successive_halving_topk
from pyramidions.nn.layer import Layer
from pyramidions.nn.multiplicative import check_modules
from pyramidions.nn.output import OUTPUT, PointerOutput
from pyramidions.nn.pooling import POOLING, MarkersPooler, TopKPooler
from pyramidions.nn.positions import POSITIONS, AxialPositions, LearnedPositions
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import RECURRENCE
from pyramidions.nn.reduced import in_int8
from pyramidions.nn.scorer import SCORER, AttentionScorer
from pyramidions.nn.segment_pooling import SEGMENT_UPSAMPLING, SEGMENTS
from pyramidions.nn.selector import SELECTOR, draw
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.nn.stack import STACK
from pyramidions.nn.stage import Stage
from pyramidions.nn.sublayer import Memory
from pyramidions.nn.upsampling import UPSAMPLING

Call = Callable[[], object]
X, SCORES = vectors(1, 5, DIM), vectors(1, 5)
REAL = torch.zeros(1, 5, dtype=torch.bool)
SUPERVISED = BOUNDARIES.build("unigram", {}, **SETTING)


def three_for_two(**fields: str) -> Call:
    return lambda: tiny(**fields).decoder(batch(2, 2, 2), (Memory(vectors(2, 3, DIM)),))


def pooler(kind: str, **options: Any) -> Call:
    scorer = SCORER.build("index", {"stride": 1})
    return lambda: POOLING.build(kind, options, **{"k": 4, "window": 4, "scorer": scorer, **SETTING})


def option(registry: Registry[Any], kind: str, name: str, value: object) -> Call:
    given = {key: each for key, each in SETTING.items() if key != name}
    return lambda: registry.build(kind, {name: value}, **given)


def takes(name: str) -> list[str]:
    return [kind for kind in POOLING.names if name in POOLING.arguments(kind)]


def unjoined(kind: str) -> Call:
    projections = PROJECTIONS.build(kind, {}, **SETTING, joins_heads=False)
    return lambda: projections.output(vectors(2, HEADS, 5, DIM // HEADS))


def axial(shape: list[int], dims: list[int] | None = None) -> Call:
    return lambda: AxialPositions(DIM, 16, shape, dims)


def concatenated(*memories: Memory) -> object:
    decoder = tiny(decoder="concatenated").decoder
    decoder.longest_memory = 3
    return decoder.features(torch.tensor([[5, 6]]), memories)


def scored_by_attention(run: list[Layer]) -> Call:
    stage = Stage(run, TopKPooler(4, AttentionScorer(), hard_topk, hard_topk))
    return lambda: stage(Sequence(X, REAL), STACK.build("plain", {}))


def ranker() -> SentenceRanker:
    fields = {"embed_dim": DIM, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 2, "pooling_lengths": "6,None"}
    config = extractor_preset("extractor", **fields, self_attention="full", max_source_positions=24)
    return build_extractor(config, VOCABULARY, MARKER, PAD)


def rating_without_units() -> object:
    model = ranker()
    model.encoder.register_forward_hook(
        lambda module, given, encoded: encoded._replace(sequence=encoded.sequence._replace(unit=None))
    )
    return model(batch(9))


def searched(evaluated: bool = True, sharpness: float = 1.0, **options: Any) -> Call:
    """Search with a model of 20 tokens, of which 18 are neither padding nor the end."""

    def call() -> object:
        model = tiny().train(not evaluated)
        model.decoder.embedder.tokens.weight.data *= sharpness
        search = Sampling if options.keys() & {"temperature", "top_k", "top_p", "seeds"} else BeamSearch
        given = {"min_len": 0, "max_len": 8, **({"beam": 2} if search is BeamSearch else {}), **options}
        return search(**given)(model, batch(5))

    return call


PARTS: list[tuple[Call, str, str]] = [
    (lambda: HeposAttention(6, 4), "num_heads", "(6) must be divisible by the `stride` of hepos (4)."),
    (lambda: LinformerAttention(9)(*vectors(3, 1, 2, 10, 4)), "at most 9 positions", "but read 10."),
    (lambda: RelativeAttention(9, 3), "embed_dim", "but is 9."),
    (lambda: ATTENTION.build("linformer", {"max_length": 9, "compressed": 0}), "compressed", "but is 0."),
    (lambda: ATTENTION.build("sliding_window", {"dilation": 2}), "dilated_heads", "0"),
    (lambda: tiny().encoder(batch(5), batch(5).eq(PAD), marked=~REAL), "marked", "no layer has one."),
    (lambda: BOUNDARIES.build("whitespace", {}, **SETTING, space_idx=None), "boundaries", "there is none in it."),
    (lambda: BOUNDARIES.build("whitespace", {}, **SETTING, space_idx=3)(HiddenStates(X)), "boundaries", "are none."),
    (lambda: SUPERVISED.loss(Segmentation(torch.zeros(1, 5), SCORES, None)), "learns from targets", "there are none."),
    (lambda: concatenated(Memory(X), Memory(X)), "one memory", "but there are 2."),
    (lambda: concatenated(Memory(X)), "longest_memory", "but there are 5."),
    (three_for_two(), "tokens", "(3 rows) must be divisible by the number of documents (2)."),
    (three_for_two(decoder="concatenated"), "tokens", "(3 rows) must be divisible by the number of documents (2)."),
    (lambda: successive_halving_topk(X, SCORES, 1, base=1.0), "base", "but is 1.0."),
    (lambda: successive_halving_topk(X, SCORES, 1, padding_mask=REAL[:, 1:]), "padding_mask", "but is (1, 4)."),
    (lambda: successive_halving_topk(X, SCORES[:, 1:], 2), "scores", "(1, 5, 8) and (1, 4)."),
    (lambda: successive_halving_topk(X, SCORES, 0), "k", "but is 0."),
    (lambda: hard_topk(X, SCORES, 0), "k", "but is 0."),
    (lambda: iterative_topk(X, SCORES, 0), "k", "but is 0."),
    (lambda: gumbel_topk(X, SCORES, 0), "k", "but is 0."),
    (lambda: PointerOutput(DIM, VOCABULARY)(X, vectors(VOCABULARY, DIM)), "A pointer", "`prepare` returns"),
    (pooler("soft_topk", base=1.0), "base", "but is 1.0."),
    (lambda: POOLING.build("segments", {"k": 0, "window": 4}, **SETTING), "k", "but is 0."),
    (pooler("segments", prior=1.0), "prior", "but is 1.0."),
    *((pooler(kind, inference="firm"), "inference", "'firm'") for kind in takes("inference")),
    *((pooler(kind, temperature=0.0), "temperature", "but is 0.0.") for kind in takes("temperature")),
    (lambda: MarkersPooler(4)(Sequence(X, REAL), PoolingContext(lambda: SCORES)), "which unit", "but does not."),
    (axial([3, 5]), "shape", "but is [3, 5], which has 15."),
    (axial([4, 4, 4]), "shape", "but is [4, 4, 4]."),
    (axial([-4, -4]), "shape", "but is [-4, -4]."),
    (axial([4, 4], [2, 5]), "dims", "but is [2, 5]."),
    (axial([4, 4], [8]), "dims", "but is [8]."),
    (axial([4, 4], [0, 8]), "dims", "but is [0, 8]."),
    (lambda: AxialPositions(DIM, 1, [3, 5], [2, 6])(torch.arange(16), 16), "at most 15 tokens", "but has 16."),
    (lambda: LearnedPositions(DIM, max_length=5)(torch.arange(6), 6), "at most 5 tokens", "but has 6."),
    (lambda: LearnedPositions(DIM, max_length=9, length=7), "length", "(7) must be at least the longest text (9)."),
    (lambda: PROJECTIONS.build("multiplicative_conv", {"dense_memory": True}, **SETTING), "dense_memory", "is true."),
    *((unjoined(kind), "no output", "These projections") for kind in PROJECTIONS.names),
    (lambda: check_modules("embed_dim", 8, 3), "modules", "(3)"),
    (lambda: SELECTOR.build("independent", {}, **SETTING).steps(X, ~REAL, draw), "rates all units at once", ""),
    (scored_by_attention([]), "The scorer", "no self-attention comes before it."),
    (scored_by_attention([layer("feed_forward")]), "The scorer", "no self-attention comes before it."),
    (lambda: in_int8(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 1))), "precision", "int8 is for models with dense"),
    (rating_without_units, "needs poolings", "made of"),
]
SEARCHES = [
    (searched(beam=0), "beam", "but is 0."),
    (searched(beam=19), "beam", "but is 19."),
    (searched(min_len=9), "min_len", "but is 9"),
    (searched(length_penalty=math.nan), "length_penalty", "but is nan."),
    (searched(no_repeat_ngram=-1), "no_repeat_ngram", "but is -1."),
    (searched(best=3), "best", "but is 3."),
    (searched(eos=PAD), "eos", "but is 1."),
    (searched(eos=20), "eos", "but is 20."),
    (searched(prefix=(4, 20)), "prefix", "but is 20."),
    (searched(max_len=1, prefix=(4, 5)), "max_len", "but is 1."),
    (searched(evaluated=False), "evaluation mode", "is in training mode."),
    (searched(sharpness=math.nan), "scores must be numbers", "but are NaN."),
    (searched(min_len=19, max_len=19, no_repeat_ngram=1), "no_repeat_ngram", "No summary of 19 to 19 tokens"),
    (searched(temperature=0.0), "temperature", "but is 0.0."),
    (searched(temperature=math.nan), "temperature", "but is nan."),
    (searched(top_k=-1), "top_k", "but is -1."),
    (searched(top_p=0.0), "top_p", "but is 0.0."),
    (searched(top_p=1.1), "top_p", "but is 1.1."),
    (searched(seeds=(1, 2)), "seeds", "but are 2."),
    (searched(sharpness=math.nan, top_k=3, top_p=0.5), "scores must be numbers", "but are NaN."),
    (searched(min_len=19, max_len=19, no_repeat_ngram=1, top_k=0), "no_repeat_ngram", "No summary of 19 to 19"),
]
REGISTRIES: list[Registry[Any]] = [
    *(ATTENTION, BOUNDARIES, DECODER, FEED_FORWARD, OUTPUT, POOLING, POSITIONS, PROJECTIONS, RECURRENCE, SCORER),
    *(SEGMENTS, SEGMENT_UPSAMPLING, STACK, UPSAMPLING),
]
#: by kind: each option, and values of which each means nothing
WRONG: list[tuple[Registry[Any], str, dict[str, tuple[Any, ...]]]] = [
    (ATTENTION, "adaptive_span", {"max_window": (0, 9), "ramp": (0,), "penalty": (-1.0, math.nan)}),
    (ATTENTION, "bigbird", {"block_size": (0,), "window_blocks": (2,), "global_blocks": (-1,), "random_blocks": (-1,)}),
    (ATTENTION, "block_global", {"block_size": (5,)}),
    (ATTENTION, "blockwise", {"block_size": (0,)}),
    (ATTENTION, "bucketed", {"furthest": (16,)}),
    (ATTENTION, "efficient", {"local_heads": (-1,), "local_window": (0,)}),
    (ATTENTION, "hepos", {"stride": (0,)}),
    (ATTENTION, "linformer", {"max_length": (None,)}),
    (ATTENTION, "lsh", {"num_buckets": (0, 3), "bucket_size": (0,), "num_hashes": (0,), "local_heads": (-1,)}),
    (ATTENTION, "lsh", {"local_window": (0, 3), "chunk_buckets": (0,), "chunks_after": (2,), "hash_factors": (3,)}),
    (ATTENTION, "pooled_blockwise", {"padding": (18,), "stride": (19,), "window": (0,)}),
    (ATTENTION, "segments", {"segment_length": (0,)}),
    (ATTENTION, "sinkhorn", {"bucket_size": (0,), "iterations": (0,), "temperature": (0.0,)}),
    (ATTENTION, "sliding_window", {"window": (0, 3), "dilation": (0, 2), "dilated_heads": (-1,)}),
    (ATTENTION, "strided", {"stride": (0,), "window": (0, 7)}),
    (BOUNDARIES, "fixed", {"factor": (1,)}),
    (BOUNDARIES, "gumbel", {"prior": (0.0, 1.5), "temperature": (0.0,)}),
    (BOUNDARIES, "unigram", {"threshold": (1.0,), "loss": ("thrice",)}),
    (BOUNDARIES, "routing", {"factor": (1.0,), "weight": (0.0,)}),
    (BOUNDARIES, "entropy", {"window": (0,)}),
    (FEED_FORWARD, "dense", {"chunk_size": (-1,)}),
    (FEED_FORWARD, "experts", {"experts": (0, 5), "temperature": (-0.1,), "quantized": (-0.5,)}),
    (FEED_FORWARD, "sparse", {"block_size": (0, 5, 32), "rank": (0,), "temperature": (-0.1, math.inf)}),
    (FEED_FORWARD, "sparse", {"quantized": (1.1, math.nan), "activation_dropout": (1.0,)}),
    (POOLING, "markers", {"k": (0,)}),
    (OUTPUT, "multiplicative", {"modules": (0, 21)}),
    (POSITIONS, "sinusoidal", {"embed_dim": (7,)}),
    (PROJECTIONS, "conv", {"modules": (0, 3), "kernel": (2,), "value_kernel": (-1,), "length_kernel": (0,)}),
    (PROJECTIONS, "multiplicative_conv", {"modules": (0, 3), "kernel": (2,), "length_kernel": (0,)}),
    *((PROJECTIONS, kind, {"num_heads": (3,)}) for kind in PROJECTIONS.names),
    (RECURRENCE, "sru", {"dim": (0,), "layers": (0,)}),
    (SCORER, "embedding", {"coordinate": (DIM,)}),
]
OPTIONS = [
    (option(registry, kind, name, value), name, "" if value is None else str(value))
    for registry, kind, options in WRONG
    for name, values in options.items()
    for value in values
]
UNKNOWN = [
    (option(registry, kind, "blok_size", 3), "no option 'blok_size'", kind)
    for registry in REGISTRIES
    for kind in registry.names[:1]
]


@pytest.mark.parametrize(("call", "argument", "value"), [*PARTS, *SEARCHES, *OPTIONS, *UNKNOWN])
def test_a_refusal_names_the_argument_and_its_value(call: Call, argument: str, value: str) -> None:
    with pytest.raises(ValueError) as refusal:
        call()
    message = str(refusal.value)
    assert (f"`{argument}`" if argument.isidentifier() else argument) in message
    assert value in message
