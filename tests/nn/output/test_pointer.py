"""The output layer that copies, against sums written out and against products of whole matrices."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from pyramidions.models import PyramidionConfig, build
from pyramidions.nn.output import PointerOutput
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.provenance import Origins
from pyramidions.nn.reduced import Int8TiedOutput, in_int8
from pyramidions.nn.sublayer import Memory
from pyramidions.nn.transformer import Transformer

PAD, VOCABULARY = 1, 12
CONFIG = PyramidionConfig(
    embed_dim=8, ffn_embed_dim=16, num_heads=2, encoder_layers=3, decoder_layers=2, max_source_positions=40,
    dropout=0.0, attention_dropout=0.0, pooling_lengths="20,5,None", output="pointer",
)  # fmt: skip
VECTORS_ALONE = "pointer(token_dim=0)"
POOLINGS = [kind for kind in POOLING.names if POOLING[kind].has_provenance]


def model(**fields: Any) -> Transformer:
    torch.manual_seed(0)
    return build(replace(CONFIG, **fields), VOCABULARY, PAD, marker_idx=4).eval()


def documents(*lengths: int, padding: int = 0) -> Tensor:
    torch.manual_seed(1)
    tokens = torch.full((len(lengths), max(lengths) + padding), PAD)
    for row, length in enumerate(lengths):
        tokens[row, :length] = torch.randint(4, VOCABULARY, (length,))
        tokens[row, 0] = 4
    return tokens


def mixed_by_hand(output: PointerOutput, features: Tensor, embedding: Tensor, memory: Memory) -> Tensor:
    """Write the mixture down as its definition has it, token by token, in place of the layer's own way."""
    assert memory.origins is not None
    origins, pointer = memory.origins, output.pointer
    made_of = origins.made_of.of(torch.eye(memory.x.size(1)).expand(len(features), -1, -1))
    tokens = origins.tokens.gather(1, origins.places)
    probabilities = torch.zeros(*features.shape[:2], len(embedding), dtype=features.dtype)
    for b in range(len(features)):
        for t, h in enumerate(features[b]):
            scores = pointer.query(h) @ pointer.key(memory.x[b]).T / features.size(-1) ** 0.5
            if memory.key_bias is not None:
                scores = scores + memory.key_bias[b]
            if memory.padding_mask is not None:
                scores = scores.masked_fill(memory.padding_mask[b], -torch.inf)
            a = scores.softmax(-1)
            g = (pointer.gate(h) + a @ pointer.value(memory.x[b])).sigmoid()
            probabilities[b, t] = g * (embedding @ h).softmax(-1)
            each = [sum(a[k] * made_of[b, k, i] for k in range(len(a))) for i in range(made_of.size(2))]
            if pointer.token_query is not None and pointer.token_key is not None:
                normal = [(e - e.mean()) / (e.var(correction=0) + 1e-5) ** 0.5 for e in embedding]
                now, before = pointer.token_query(h).chunk(2)
                for i, token in enumerate(tokens[b].tolist()):
                    score = now @ pointer.token_key(normal[token])
                    if i > 0:
                        score = score + before @ pointer.token_key(normal[tokens[b, i - 1]])
                    each[i] = each[i] * (score / len(now) ** 0.5).exp()
            for token, c in zip(tokens[b].tolist(), each, strict=True):
                probabilities[b, t, token] += (1 - g[0]) * c / sum(each)
    return probabilities


@pytest.mark.parametrize(
    ("pooling", "output"),
    [*((pooling, "pointer") for pooling in (None, *POOLINGS)), (None, VECTORS_ALONE), ("soft_topk", VECTORS_ALONE)],
)
@torch.no_grad()
def test_what_a_model_returns_is_the_definition(pooling: str | None, output: str) -> None:
    pooled = {"pooling_lengths": None} if pooling is None else {"pooling": pooling}
    transformer = model(**pooled, output=output)
    source, target = documents(40, 7, 23), torch.randint(4, VOCABULARY, (3, 6))
    encoded = transformer.encoder(source, source.eq(PAD))
    features = transformer.decoder.features(target, encoded.memories)
    layer = transformer.decoder.output
    assert isinstance(layer, PointerOutput)
    embedding = transformer.decoder.embedder.tokens.weight
    expected = mixed_by_hand(layer, features, embedding, encoded.memories[0])
    torch.testing.assert_close(transformer(source, target).exp(), expected, rtol=1e-4, atol=1e-6)


def test_gradients_reach_the_scorers_as_finite_differences_say() -> None:
    transformer = model(pooling="soft_topk").double()
    source, target = documents(40, 31), torch.randint(4, VOCABULARY, (2, 6))
    scorer = transformer.encoder.poolers["0"].scorer.linear.weight

    def loss(change: Tensor) -> Tensor:
        found = torch.func.functional_call(
            transformer, {"encoder.poolers.0.scorer.linear.weight": scorer.detach() + change}, (source, target)
        )
        return found.gather(2, target[..., None]).sum()

    change = torch.zeros_like(scorer, requires_grad=True)
    assert torch.autograd.gradcheck(loss, change, eps=1e-7, atol=1e-4)
    (grad,) = torch.autograd.grad(loss(change), change)
    assert grad.abs().max() > 1e-3


@torch.no_grad()
def test_of_several_memories_the_first_is_pointed_to() -> None:
    transformer, source = model(memories="1,last", cross_attention="full; hepos(stride=2)"), documents(40)
    first, last = transformer.encoder(source, source.eq(PAD)).memories
    assert first.x.size(1) == 40 and last.x.size(1) == 5
    assert first.origins is not None and first.origins.tokens[0, first.origins.places[0]].equal(source[0])
    target = torch.randint(4, VOCABULARY, (1, 4))
    found = transformer(source, target)
    changed = transformer.decoder(target, (first, last._replace(origins=None)))
    torch.testing.assert_close(changed, found)


@torch.no_grad()
def test_a_document_of_padding_has_nothing_to_copy() -> None:
    output = PointerOutput(embed_dim=8, vocab_size=VOCABULARY)
    features, embedding = torch.randn(1, 3, 8), torch.randn(VOCABULARY, 8)
    source = torch.full((1, 4), PAD)
    nothing = Origins.of_tokens(source, source.eq(PAD), torch.float32)
    found = output(
        features, embedding, output.prepare((Memory(torch.randn(1, 4, 8), source.eq(PAD), nothing),), embedding)
    )
    torch.testing.assert_close(found, (features @ embedding.T).log_softmax(-1))


@pytest.mark.parametrize("written", [1, 38])
def test_steps_that_learn_nothing_return_the_same(written: int) -> None:
    transformer, source = model(), documents(40, 7, 23)
    target = torch.randint(4, VOCABULARY, (3, written))
    found = transformer(source, target)
    assert found.requires_grad
    for quiet in (torch.no_grad(), torch.inference_mode()):
        with quiet:
            torch.testing.assert_close(transformer(source, target), found.detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("pooling", "dtype"), [("soft_topk", torch.float16), ("segments", torch.bfloat16)])
@torch.no_grad()
def test_autocast_changes_no_share_of_what_is_copied(pooling: str, dtype: torch.dtype) -> None:
    transformer, source = model(pooling=pooling), documents(40, 23)
    origins = transformer.encoder(source, source.eq(PAD)).memories[0].origins
    assert origins is not None
    attention = torch.full((2, 3, origins.made_of.weights.size(1)), 1e-9)
    with torch.autocast("cpu", dtype):
        found = origins.made_of.of(attention)
    assert found.equal(origins.made_of.of(attention)) and found.amax() > 0


@torch.no_grad()
def test_in_8_bits_the_vocabulary_is_scored_in_8_bits_and_the_pointer_in_32() -> None:
    output = in_int8(model(embed_dim=32, ffn_embed_dim=32)).decoder.output
    assert isinstance(output, PointerOutput) and isinstance(output.vocabulary, Int8TiedOutput)
    assert type(output.pointer.query) is torch.nn.Linear


def test_what_was_read_before_a_pooling_or_is_as_long_as_the_document_again_can_be_pointed_to() -> None:
    assert model(pooling="funnel", pooling_lengths="None,5,None").encoder.tells_origins
    assert model(pooling="max", memories="1,last").encoder.tells_origins
