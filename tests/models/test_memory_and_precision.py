"""Training that keeps less, or computes in half precision, learns the same."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tiny_presets import DROPOUTS, covering_presets, shrunk
from torch import Tensor

from pyramidions.models import PRESETS
from pyramidions.nn import Transformer
from pyramidions.nn.functional import topk

VOCABULARY = 60
#: Presets in which nothing is hashed or selected.
CONTINUOUS = ("vanilla", "blockwise", "deep_blockwise", "efficient", "funnel", "transpooler_mean", "transpooler_max")
#: The others have the same parts in more layers.
SHALLOW = [name for name in PRESETS if not name.endswith(("800m", "17b"))]


def _logits(model: Transformer) -> Tensor:
    """The logits of two documents, one of them shorter, with the dropout of one seed: (2, 10, V)."""
    generator = torch.Generator().manual_seed(2)
    source = torch.randint(4, VOCABULARY, (2, 128), generator=generator)
    source[1, 50:] = model.padding_idx
    torch.manual_seed(3)
    return model(source, torch.randint(4, VOCABULARY, (2, 10), generator=generator))


def _loss(model: Transformer) -> Tensor:
    return F.cross_entropy(_logits(model).flatten(0, 1).float(), torch.arange(4, 24))


def _gradients(model: Transformer) -> dict[str, Tensor]:
    _loss(model).backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_checkpointed_activations_are_not_kept() -> None:
    kept = []
    for checkpointed in (False, True):
        storages: dict[int, torch.UntypedStorage] = {}

        def keep(x: Tensor, storages: dict[int, torch.UntypedStorage] = storages) -> Tensor:
            storages[x.untyped_storage().data_ptr()] = x.untyped_storage()
            return x

        model = shrunk("deep_blockwise", checkpoint_activations=checkpointed)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            loss = _loss(model)
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        kept.append(sum(storage.nbytes() for where, storage in storages.items() if where not in weights))
        loss.backward()
    assert kept[1] < kept[0] / 5


@pytest.mark.parametrize("name", covering_presets(SHALLOW))
def test_half_precision_stays_finite_and_autocast_near_full_precision(name: str) -> None:
    model = shrunk(name, **DROPOUTS)
    with torch.no_grad():
        expected = _logits(model)
    with torch.autocast("cpu", torch.bfloat16):
        logits = _logits(model)
    logits.float().logsumexp(dim=-1).mean().backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert idle == []
    error = (logits.float() - expected).norm() / expected.norm()
    # Rounding may send a vector to another bucket, or let another one win a round. A logit of noise would be 1.4 away.
    assert error < (0.03 if name in CONTINUOUS else 0.6)
    model.zero_grad()
    assert all(gradient.isfinite().all() for gradient in _gradients(model.half()).values())


@pytest.mark.parametrize("how", ["autocast", "weights"])
def test_scores_and_top_k_weights_are_computed_in_full_precision(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.dtype] = []
    original = topk.halving._tournament

    def watched(scores: Tensor, *rest: Any) -> Any:
        seen.append(scores.dtype)
        return original(scores, *rest)

    monkeypatch.setattr(topk.halving, "_tournament", watched)
    model = shrunk("deep_pyramidion", pooling_lengths="None,64,16,None,None,None")
    if how == "weights":
        _loss(model.to(torch.bfloat16))
    else:
        with torch.autocast("cpu", torch.bfloat16):
            _loss(model)
    assert seen == [torch.float32, torch.float32]
