"""Language models of every kind look at no later token, whatever it does to segments, and write as they read."""

import pytest
import torch
import torch.nn.functional as F
from small_language_models import KINDS, PAD, SPACE, VOCABULARY, WITHOUT_SEGMENTS, fields, small, texts
from tables import for_each

from pyramidions.models import build_language_model, language_model_preset
from pyramidions.nn import LanguageModel
from pyramidions.nn.functional.segments import upsampled_segments
from pyramidions.nn.hourglass import Hourglass
from pyramidions.nn.sublayer import LayerContext

kinds = pytest.mark.parametrize("kind", KINDS)
shortened = pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind][0] not in WITHOUT_SEGMENTS])
LEARNED = ("gumbel", "unigram", "entropy")


def closed(model: LanguageModel, tokens: torch.Tensor) -> list[list[int]]:
    return [found.closed.tolist() for found in model.features(tokens).segmentations]


@kinds
@torch.no_grad()
def test_a_token_changes_no_prediction_before_it(kind: str) -> None:
    model, tokens = small(kind), texts(13, 13)
    before = model(tokens)
    for position in range(13):
        changed = tokens.clone()
        # A space becomes a letter, and any other a space: with whitespace a boundary goes or comes.
        changed[:, position] = torch.where(tokens[:, position] == SPACE, SPACE + 1, SPACE)
        after = model(changed)
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=0, atol=1e-5)
        assert not torch.allclose(after[:, position:], before[:, position:], rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["whitespace", *LEARNED, "routing"])
@torch.no_grad()
def test_tokens_that_add_and_remove_boundaries_are_among_those_that_were_changed(kind: str) -> None:
    differences = set()
    for seed in range(4):
        model, tokens = small(kind, seed), texts(13, 13)
        (before,) = model.features(tokens).segmentations
        for position in range(13):
            changed = tokens.clone()
            changed[:, position] = torch.where(tokens[:, position] == SPACE, SPACE + 1, SPACE)
            (after,) = model.features(changed).segmentations
            differences |= set((after.boundaries - before.boundaries)[:, position].tolist())
            torch.testing.assert_close(model(changed)[:, :position], model(tokens)[:, :position], rtol=0, atol=1e-5)
    assert {-1.0, 1.0} <= differences


@kinds
@torch.no_grad()
def test_a_prefix_is_read_as_in_the_whole_text(kind: str) -> None:
    model, tokens = small(kind), texts(11, 11)
    whole = model(tokens)
    for length in range(1, 11):
        torch.testing.assert_close(model(tokens[:, :length]), whole[:, :length], rtol=0, atol=1e-5)


@kinds
@torch.no_grad()
def test_a_text_is_read_alike_in_any_batch_whose_rows_close_other_numbers_of_segments(kind: str) -> None:
    model, tokens = small(kind), texts(13, 6, 1)
    tokens[1, :6] = 5
    together = model(tokens)
    assert together.isfinite().all()
    for row, length in enumerate((13, 6, 1)):
        alone = model(tokens[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=0, atol=1e-5)


@kinds
@for_each("sizes", [[1] * 13, [13], [5, 1, 1, 6]])
@torch.no_grad()
def test_steps_of_texts_that_end_segments_at_different_times_equal_the_whole(kind: str, sizes: list[int]) -> None:
    model, tokens = small(kind), texts(13, 13, 13)
    # Among them is a text without a space.
    tokens[1] = 5
    cache = model.new_cache()
    steps = torch.cat([model(part, cache) for part in tokens.split(sizes, dim=1)], dim=1)
    torch.testing.assert_close(steps, model(tokens), rtol=0, atol=1e-5)
    assert cache.length == 13


@kinds
@torch.no_grad()
def test_rows_of_a_cache_can_be_chosen_again_and_dropped(kind: str) -> None:
    model, tokens = small(kind), texts(9, 9, 9)
    tokens[2] = 5
    rows, cache = torch.tensor([2, 0, 0]), model.new_cache()
    model(tokens[:, :4], cache)
    model(tokens[:, 4:5], cache)
    cache.select(rows)
    later = torch.cat([tokens[rows, :5], texts(4, 4, 4, seed=1)], dim=1)
    steps = torch.cat([model(part, cache) for part in later[:, 5:].split(1, dim=1)], dim=1)
    torch.testing.assert_close(steps, model(later)[:, 5:], rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_shortened_part_runs_at_first_and_where_a_segment_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small("whitespace")
    ran: list[int] = []
    (part,) = model.hourglass.all_shortened()
    step = Hourglass.step

    def counted(self: Hourglass, x: torch.Tensor, *given: object) -> torch.Tensor:
        if self is part.inner:
            ran.append(x.size(1))
        return step(self, x, *given)

    monkeypatch.setattr(Hourglass, "step", counted)
    cache = model.new_cache()
    per_step = []
    for token in (5, 6, SPACE, 7, SPACE, SPACE, 8):
        ran.clear()
        model(torch.tensor([[token]]), cache)
        per_step.append(sum(ran))
    # The null group comes first.
    assert per_step == [1, 0, 1, 0, 1, 1, 0]


@shortened
def test_before_the_first_boundary_all_texts_read_the_null_group(kind: str) -> None:
    model = small(kind)
    (part, *_) = model.hourglass.all_shortened()
    added = []
    for tokens in (texts(13, 13), texts(9, seed=1)):
        x = model.embedder(tokens)
        for layer in model.hourglass.before:
            x = model.stack([layer], x, LayerContext())
        read, (found, *_) = part(x, tokens, None, model.stack)
        nothing = torch.zeros(len(x), 1, x.size(2))
        read = read - part.upsampling(nothing, found._replace(boundaries=torch.zeros_like(found.boundaries)), x)
        added += [row[ends.cumsum(0) == 0] for row, ends in zip(read, found.boundaries, strict=True)]
    first = torch.cat(added)
    torch.testing.assert_close(first, first[:1].expand_as(first))


@shortened
def test_gradients_reach_every_weight_and_the_null_group_even_of_a_text_without_boundaries(kind: str) -> None:
    model = small(kind).train()
    for tokens in (texts(13, 9), torch.full((2, 1), 5)):
        model.zero_grad()
        found = model.features(tokens)
        logits = model.logits(found.x)
        targets = model.boundary_targets(logits, tokens == SPACE)
        loss, added = logits.log_softmax(-1).square().mean(), model.boundary_loss(found.segmentations, targets)
        (loss if added is None else loss + added.sum()).backward()
        for part in model.hourglass.all_shortened():
            assert part.null_group.grad is not None and part.null_group.grad.abs().sum() > 0
        assert all(w.grad is None or w.grad.isfinite().all() for w in model.parameters())
        assert all(w.grad is not None for w in model.parameters())


@kinds
@torch.no_grad()
def test_texts_without_any_boundary_and_texts_of_spaces_alone_stay_finite(kind: str) -> None:
    model = small(kind)
    for tokens in (torch.full((2, 7), 5), torch.full((2, 7), SPACE), torch.tensor([[PAD, PAD], [5, PAD]])):
        found = model.features(tokens)
        assert model.logits(found.x).isfinite().all()
        targets = model.boundary_targets(model.logits(found.x), tokens == SPACE)
        added = model.boundary_loss(found.segmentations, targets)
        assert added is None or added.isfinite().all()


@torch.no_grad()
def test_a_text_without_a_boundary_reads_the_null_group_throughout() -> None:
    model = small("whitespace")
    assert closed(model, torch.full((2, 7), 5)) == [[0, 0]]
    (found,) = model.features(torch.full((1, 3), 5)).segmentations
    read = torch.arange(2.0).view(1, 2, 1)
    assert upsampled_segments(read, found.boundaries).flatten().tolist() == [0, 0, 0]


@torch.no_grad()
def test_an_hourglass_within_another_pools_segments_of_segments() -> None:
    model = small("nested")
    tokens = torch.tensor([[5, SPACE, 6, SPACE, 7, SPACE, 8], [5, 5, 5, 5, 5, 5, SPACE]])
    # Every second one of the null group and the words ends a segment of the inner hourglass.
    assert closed(model, tokens) == [[3, 1], [2, 1]]


@for_each("kind", ["nested", "nested and learned", "gumbel", "whitespace", "routing", "nested routing"])
def test_training_teaches_a_text(kind: str) -> None:
    name, chosen = fields(kind, embed_dim=16, ffn_embed_dim=32)
    torch.manual_seed(0)
    model = build_language_model(language_model_preset(name, **chosen), VOCABULARY, PAD, SPACE).train()
    optimizer, tokens = torch.optim.Adam(model.parameters(), lr=0.01), texts(24, 24)
    for step in range(60):
        found = model.features(tokens[:, :-1])
        loss = F.cross_entropy(model.logits(found.x).flatten(0, 1), tokens[:, 1:].flatten())
        if step == 0:
            # As by chance: new weights are small.
            assert loss.item() == pytest.approx(torch.tensor(float(VOCABULARY)).log().item(), abs=0.1)
        added = model.boundary_loss(found.segmentations, None)
        optimizer.zero_grad()
        (loss if added is None else loss + added.mean() / 23).backward()
        optimizer.step()
    assert loss.item() < 1.0
    model.eval()
    with torch.no_grad():
        cache = model.new_cache()
        steps = torch.cat([model(part, cache) for part in tokens.split(1, dim=1)], dim=1)
        torch.testing.assert_close(steps, model(tokens), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["gumbel", "routing", "nested routing"])
def test_boundaries_learn_from_the_loss_of_the_language_model_alone(kind: str) -> None:
    model, tokens = small(kind).train(), texts(20, 20)
    model(tokens).log_softmax(-1)[..., 5].sum().backward()
    for boundaries in model.boundaries:
        assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in boundaries.parameters())


@pytest.mark.parametrize("kind", ["unigram", "entropy"])
def test_a_supervised_predictor_learns_from_its_targets_alone(kind: str) -> None:
    model, tokens = small(kind).train(), texts(20, 20)
    model(tokens).log_softmax(-1)[..., 5].sum().backward()
    predictor = model.boundaries[0]
    assert all(weight.grad is None for weight in predictor.parameters())


@pytest.mark.parametrize("kind", ["gumbel", "routing"])
def test_what_is_summed_is_shortened_by_rows_and_not_by_the_batch(kind: str) -> None:
    model, tokens = small(kind), texts(13, 6)
    together = model.boundary_loss(model.features(tokens).segmentations, None)
    alone = [
        model.boundary_loss(model.features(tokens[i : i + 1, :n]).segmentations, None) for i, n in ((0, 13), (1, 6))
    ]
    torch.testing.assert_close(together, torch.cat(alone))


@kinds
@for_each("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_trains_and_writes(kind: str, dtype: torch.dtype) -> None:
    model, tokens = small(kind).to(dtype).train(), texts(13, 6)
    found = model.features(tokens)
    logits = model.logits(found.x)
    assert logits.dtype == dtype and logits.isfinite().all()
    added = model.boundary_loss(found.segmentations, model.boundary_targets(logits, tokens == SPACE))
    (logits.float().sum() if added is None else logits.float().sum() + added.sum()).backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())
    with torch.no_grad():
        cache = model.eval().new_cache()
        steps = torch.cat([model(part, cache) for part in tokens[:1].split(1, dim=1)], dim=1)
    assert steps.dtype == dtype and steps.isfinite().all()


@pytest.mark.parametrize("kind", ["gumbel", "routing"])
def test_under_autocast_a_model_trains(kind: str) -> None:
    model, tokens = small(kind).train(), texts(13, 6)
    with torch.autocast("cpu", torch.bfloat16):
        found = model.features(tokens)
        logits = model.logits(found.x)
    added = model.boundary_loss(found.segmentations, None)
    assert added is not None
    (logits.float().sum() + added.sum()).backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_boundaries_are_marked_without_reading_segments(kind: str) -> None:
    model, tokens = small(kind), texts(9, 6)
    marked, whole = model.mark(tokens), model.features(tokens).segmentations
    assert (marked is None) == (not whole)
    if marked is not None:
        torch.testing.assert_close(marked.boundaries, whole[0].boundaries)
        torch.testing.assert_close(marked.logits, whole[0].logits)
