"""The gate deletes softly in training and for good in evaluation; its controller holds the share of deletions."""

import copy

import pytest
import torch
from torch import Tensor
from whole_models import PAD, batch, tiny

from pyramidions.nn.pooling import POOLING
from pyramidions.nn.pooling.delete_gate import DeleteGatePooler
from pyramidions.nn.regularised import regulariser_of
from pyramidions.nn.sequence import PoolingContext, Sequence

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("a gate asks for no attention"))
LOGITS = torch.tensor([[2.0, -1.0, 0.5, -3.0, 1.0], [-2.0, -0.5, -1.0, 9.0, 9.0]])
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])


def gate(k: int = 9, **options: object) -> DeleteGatePooler:
    """Return a gate whose logits are the last of three dimensions; the norm is taken away."""
    made = POOLING.build("delete_gate", {**options}, k=k, embed_dim=3)
    assert isinstance(made, DeleteGatePooler)
    made.norm = torch.nn.Identity()
    with torch.no_grad():
        made.gate.weight.copy_(torch.tensor([[0.0, 0.0, 1.0]]))
        made.gate.bias.zero_()
    return made


def given(logits: Tensor = LOGITS) -> Sequence:
    place = torch.arange(5.0).expand(2, -1)
    return Sequence(torch.stack([place, place, logits], dim=2), PADDING)


def test_evaluation_drops_what_is_deleted_but_never_a_whole_document() -> None:
    pooled = gate(scale=10.0).eval()(given(), NO_CONTEXT)
    assert pooled.lengths == [3, 1]
    # What stays keeps its bias, unless it is not to.
    expected = torch.tensor([[-2.0, -0.5, -1.0], [0.5, 0.0, 0.0]]).sigmoid() * -10
    torch.testing.assert_close(pooled.key_bias, expected.masked_fill(pooled.padding_mask, 0.0))
    assert gate(keeps_bias=False).eval()(given(), NO_CONTEXT).key_bias is None
    assert pooled.sources is not None and pooled.sources[0].flatten().tolist() == [0, 2, 4]
    assert pooled.sources[1, 0].item() == 1
    assert pooled.x[0].equal(given().x[0, [0, 2, 4]]) and not pooled.x[1, 1:].any()


def test_training_keeps_all_with_a_bias() -> None:
    pooled = gate(scale=10.0)(given(), NO_CONTEXT)
    assert pooled.lengths == [5, 3] and pooled.x.shape == (2, 5, 3)
    torch.testing.assert_close(pooled.key_bias, (-10 * (-LOGITS).sigmoid()).masked_fill(PADDING, 0.0))


def test_of_more_than_k_the_least_deleted_stay_in_their_order() -> None:
    for training in (True, False):
        pooled = gate(k=2).train(training)(given(), NO_CONTEXT)
        assert pooled.sources is not None and pooled.sources[0].flatten().tolist() == [0, 4]


def test_the_threshold_is_of_the_sigmoid() -> None:
    for threshold, lengths in ((1.0, [5, 3]), (0.9, [4, 3]), (0.2, [1, 1]), (0.0, [1, 1])):
        assert gate(threshold=threshold).eval()(given(), NO_CONTEXT).lengths == lengths


def test_the_controller_is_proportional_and_integral() -> None:
    made, smoothed, summed = gate(scale=10.0, share=0.7, proportional=2.0, integral=0.01), 0.0, 0.0
    mean = -10 * (-LOGITS[~PADDING]).sigmoid().mean()
    for _ in range(4):
        made(given(), NO_CONTEXT)
        loss = made.regulariser()
        assert loss is not None and loss.item() == pytest.approx((smoothed + summed) * mean.item(), abs=1e-5)
        assert made.regulariser() is None
        error = 0.7 - 5 / 8
        smoothed, summed = 0.9 * smoothed + 0.1 * 2.0 * error, summed + 0.01 * error
    state = copy.deepcopy(made.state_dict())
    torch.testing.assert_close(state["controller"].double() * 1e-9, torch.tensor([smoothed, summed]).double())
    assert made.half().controller.equal(state["controller"])
    assert regulariser_of(made.eval()) is None


def test_the_controller_follows_the_share_of_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_other_worker(seen: Tensor) -> None:
        assert seen.tolist() == [5, 8]
        seen += torch.tensor([3, 4])

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "all_reduce", add_other_worker)
    made = gate(share=0.7, proportional=2.0, integral=0.01)
    made(given(), NO_CONTEXT)
    error = 0.7 - 8 / 12
    found = made.controller.double() * 1e-9
    torch.testing.assert_close(found, torch.tensor([0.1 * 2.0 * error, 0.01 * error]).double(), rtol=1e-6, atol=1e-9)


def test_nothing_is_asked_for_where_more_is_deleted_than_wanted() -> None:
    made = gate(share=0.1)
    for _ in range(2):
        made(given(), NO_CONTEXT)
    loss = made.regulariser()
    assert loss is not None and loss.item() == 0.0


def test_soft_deletion_of_what_has_the_strongest_bias_is_that_of_evaluation() -> None:
    # What is deleted softly reads others, but nobody reads it.
    model = tiny("blockwise", "delete_gate", pooling_lengths="24,None,None", output="pointer")
    pooler = model.encoder.poolers["0"]
    assert isinstance(pooler, DeleteGatePooler)
    with torch.no_grad():
        # A kept vector has no bias, and a deleted one all of it.
        pooler.gate.weight.mul_(1e4)
        pooler.gate.bias.zero_()
        pooler.scale = 60.0
        # Every block of soft deletion is one of hard deletion only where blocks are as long as documents.
        for attention in (model.encoder.layers[1], model.encoder.layers[2]):
            attention.sublayers["self_attention"].function.attention.block_size = 64
            attention.sublayers["self_attention"].function.confined_to = 64
    source, target = batch(23, 9, 6), batch(6, 6, 6, seed=1)
    hard, cache = model.eval()(source, target), model.decoder.new_cache()
    encoded = model.encoder(source, source.eq(PAD))
    assert 0 < sum(encoded.pooled[0].lengths) < 38
    soft = model.train()(source, target)
    torch.testing.assert_close(soft, hard, rtol=0, atol=1e-4)
    # Cached steps read the bias, too.
    memories = model.encoder(source, source.eq(PAD)).memories
    assert memories[0].key_bias is not None
    steps = torch.cat([model.decoder(part, memories, cache) for part in target.split(1, dim=1)], dim=1)
    torch.testing.assert_close(steps, soft, rtol=0, atol=1e-5)


@pytest.mark.parametrize("stack", ["plain", "reversible"])
def test_the_gate_learns_from_the_loss_through_encoder_decoder_and_pointer(stack: str) -> None:
    fields = {"stack": stack, "normalize_before": True, "output": "pointer"}
    model, source = tiny("full", "delete_gate", **fields).train(), batch(20, 9)
    model(source, batch(6, 6, seed=1)).square().sum().backward()
    for pooler in model.encoder.poolers.values():
        assert pooler.gate.weight.grad.abs().sum() > 0
