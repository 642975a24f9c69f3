"""Language models of every kind look at no later token, whatever it does to segments, and write as they read."""

import pytest
import torch
import torch.nn.functional as F
from small_language_models import KINDS, PAD, SPACE, VOCABULARY, fields, small, texts

from pyramidions.models import build_language_model, language_model_preset
from pyramidions.nn import LanguageModel
from pyramidions.nn.sublayer import LayerContext

kinds = pytest.mark.parametrize("kind", KINDS)
#: kinds that keep other states, or compute other gradients
FEWER = ("vanilla", "fixed_3", "whitespace", "gumbel", "unigram", "routing", "longformer_lm", "reversible", "hashing")
fewer = pytest.mark.parametrize("kind", [*FEWER, "nested and learned", "smoothing", "one part", "last"])
LEARNED = ("gumbel", "unigram", "entropy", "routing")


def loss_of(model: LanguageModel, tokens: torch.Tensor) -> torch.Tensor:
    found = model.features(tokens)
    logits = model.logits(found.x)
    assert logits.isfinite().all()
    added = model.boundary_loss(found.segmentations, model.boundary_targets(logits, tokens == SPACE))
    loss = logits.float().log_softmax(-1).square().mean()
    return loss if added is None else loss + added.sum()


@torch.no_grad()
def by_steps(model: LanguageModel, tokens: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    cache = model.new_cache()
    found = torch.cat([model(part, cache) for part in tokens.split(sizes, dim=1)], dim=1)
    assert cache.length == tokens.size(1)
    return found


@kinds
@torch.no_grad()
def test_a_token_changes_no_prediction_before_it_even_where_boundaries_come_and_go(kind: str) -> None:
    come_or_gone = set()
    for seed in range(4 if kind in LEARNED else 1):
        model, tokens = small(kind, seed), texts(13, 13)
        before = model.features(tokens)
        for position in range(seed, 13, 1 + seed):
            changed = tokens.clone()
            # A space becomes a letter, and any other a space.
            changed[:, position] = torch.where(tokens[:, position] == SPACE, SPACE + 1, SPACE)
            after = model.features(changed)
            same, moved = (model.logits(found.x) for found in (before, after))
            torch.testing.assert_close(moved[:, :position], same[:, :position], rtol=0, atol=1e-5)
            assert not torch.allclose(moved[:, position:], same[:, position:], rtol=0, atol=1e-4)
            # Those of the outermost shortened part, if there is one.
            for one, other in zip(before.segmentations[:1], after.segmentations[:1], strict=True):
                come_or_gone |= set((one.boundaries - other.boundaries)[:, position].tolist())
    assert {-1.0, 1.0} <= come_or_gone or kind not in ("whitespace", *LEARNED)


@kinds
@torch.no_grad()
def test_a_text_is_read_alike_in_any_batch_whose_rows_close_other_numbers_of_segments(kind: str) -> None:
    model, tokens = small(kind), texts(13, 6, 1)
    # One of them has no boundary by whitespace.
    tokens[1, :6] = 5
    together = model(tokens)
    assert together.isfinite().all()
    for row, length in enumerate((13, 6, 1)):
        alone = model(tokens[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=0, atol=1e-5)


@kinds
@torch.no_grad()
def test_steps_of_texts_that_end_segments_at_different_times_equal_the_whole(kind: str) -> None:
    model, tokens = small(kind), texts(13, 13, 13)
    tokens[1] = 5
    for sizes in ([1] * 13, [5, 1, 1, 6]):
        torch.testing.assert_close(by_steps(model, tokens, sizes), model(tokens), rtol=0, atol=1e-5)


@fewer
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
def test_the_shortened_part_runs_at_first_and_where_a_segment_ends() -> None:
    model = small("whitespace")
    ran: list[int] = []
    (part,) = model.hourglass.all_shortened()
    norm = part.inner.before[0].sublayers["feed_forward"].norm
    norm.register_forward_hook(lambda module, inputs, output: ran.append(output.size(1)))
    cache, per_step = model.new_cache(), []
    for token in (5, 6, SPACE, 7, SPACE, SPACE, 8):
        ran.clear()
        model(torch.tensor([[token]]), cache)
        per_step.append(sum(ran))
    # The null group comes first.
    assert per_step == [1, 0, 1, 0, 1, 1, 0]


@pytest.mark.parametrize("kind", ["fixed_3", "whitespace", "gumbel", "routing", "smoothing", "nested"])
def test_before_the_first_boundary_all_texts_read_the_null_group(kind: str) -> None:
    model = small(kind)
    (part, *_) = model.hourglass.all_shortened()
    added = []
    for tokens in (texts(13, 13), texts(9, seed=1), torch.full((1, 3), 5)):
        x = model.embedder(tokens)
        for layer in model.hourglass.before:
            x = model.stack([layer], x, LayerContext())
        read, (found, *_) = part(x, tokens, None, model.stack)
        nothing = torch.zeros(len(x), 1, x.size(2))
        read = read - part.upsampling(nothing, found._replace(boundaries=torch.zeros_like(found.boundaries)), x)
        added += [row[ends.cumsum(0) == 0] for row, ends in zip(read, found.boundaries, strict=True)]
    first = torch.cat(added)
    torch.testing.assert_close(first, first[:1].expand_as(first))


@fewer
def test_gradients_reach_every_weight_and_the_null_group_even_of_a_text_without_boundaries(kind: str) -> None:
    model = small(kind).train()
    spaces_alone, shortest = torch.full((2, 7), SPACE), torch.tensor([[PAD, PAD], [5, PAD]])
    for tokens in (texts(13, 9), torch.full((2, 1), 5), spaces_alone, shortest):
        model.zero_grad()
        loss_of(model, tokens).backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
        if tokens is not shortest and tokens is not spaces_alone:
            assert all(part.null_group.grad.abs().sum() > 0 for part in model.hourglass.all_shortened())


@torch.no_grad()
def test_an_hourglass_within_another_pools_segments_of_segments() -> None:
    tokens = torch.tensor([[5, SPACE, 6, SPACE, 7, SPACE, 8], [5, 5, 5, 5, 5, 5, SPACE]])
    # Every second one of the null group and the words ends a segment of the inner hourglass.
    assert [found.closed.tolist() for found in small("nested").features(tokens).segmentations] == [[3, 1], [2, 1]]


@pytest.mark.parametrize("kind", ["nested and learned", "routing"])
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
    torch.testing.assert_close(by_steps(model.eval(), tokens, [1] * 24), model(tokens), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "learns"), [("gumbel", True), ("nested routing", True), ("unigram", False), ("entropy", False)]
)
def test_boundaries_learn_from_the_loss_of_the_language_model_unless_they_have_targets(kind: str, learns: bool) -> None:
    model, tokens = small(kind).train(), texts(20, 20)
    model(tokens).log_softmax(-1)[..., 5].sum().backward()
    for boundaries in model.boundaries:
        for weight in boundaries.parameters():
            assert weight.grad is not None and weight.grad.any() if learns else weight.grad is None


@fewer
def test_half_precision_trains_and_writes(kind: str) -> None:
    # What is large is beyond float16, and what is small is lost in bfloat16.
    for dtype in (torch.float16, torch.bfloat16):
        model, tokens = small(kind).to(dtype).train(), texts(13, 6)
        loss_of(model, tokens).backward()
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())
        steps = by_steps(model.eval(), tokens[:1], [1] * 13)
        assert steps.dtype == dtype and steps.isfinite().all()


def test_under_autocast_a_model_trains() -> None:
    for kind in ("gumbel", "routing"):
        model = small(kind).train()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, texts(13, 6))
        loss.backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("kind", ["vanilla", "fixed_2", "gumbel", "nested"])
@torch.no_grad()
def test_boundaries_are_marked_without_reading_segments(kind: str) -> None:
    model, tokens = small(kind), texts(9, 6)
    marked, whole = model.mark(tokens), model.features(tokens).segmentations
    assert (marked is None) == (not whole)
    if marked is not None:
        torch.testing.assert_close(marked.boundaries, whole[0].boundaries)
        torch.testing.assert_close(marked.logits, whole[0].logits)
