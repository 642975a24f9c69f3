"""What everything that marks boundaries promises, a new kind by being registered, and what each kind does."""

import pytest
import torch
import torch.nn.functional as F
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor
from torch.distributions import Binomial

from pyramidions.nn.boundaries import (
    BOUNDARIES,
    Boundaries,
    EntropyBoundaries,
    GumbelBoundaries,
    HiddenStates,
    RoutingBoundaries,
    Segmentation,
    SupervisedBoundaries,
)
from pyramidions.nn.boundaries.predicted import spikes

kinds = pytest.mark.parametrize("kind", BOUNDARIES.names)
TOKENS = torch.tensor([[5, 3, 6, 7, 3, 3, 8], [3, 4, 9, 9, 3, 5, 3]])


def make(kind: str, **options: object) -> Boundaries:
    torch.manual_seed(0)
    return BOUNDARIES.build(kind, options, **SETTING, space_idx=3)


def mark(kind: Boundaries, scale: float = 1.0, padded: bool = False) -> Segmentation:
    return kind(HiddenStates(vectors(2, 7, DIM) * scale, TOKENS, ends_after(7, 4) if padded else None))


@kinds
def test_boundaries_are_exactly_zero_or_one_and_none_is_at_padding(kind: str) -> None:
    for training in (True, False):
        found = mark(make(kind).train(training), scale=30, padded=True)
        assert set(found.boundaries.flatten().tolist()) == {0.0, 1.0}
        assert not found.boundaries[1, 4:].any()
        assert found.closed.tolist() == found.boundaries.sum(1).tolist() and found.lengths.tolist() == [7, 4]
    assert mark(make(kind)).lengths.tolist() == [7, 7]


@kinds
def test_probabilities_are_those_of_the_logits_in_full_precision(kind: str) -> None:
    made = make(kind).to(torch.float16)
    found = made(HiddenStates(vectors(2, 7, DIM).half(), TOKENS))
    assert found.boundaries.dtype == torch.float32
    assert (found.logits is not None) == (found.probabilities is not None) == made.predicts
    assert made.predicts == bool([*made.parameters()])
    if found.logits is not None and found.probabilities is not None:
        assert found.logits.shape == (2, 7) and found.logits.dtype == torch.float32
        assert found.probabilities.equal(found.logits.sigmoid())


@kinds
def test_gradients_reach_boundaries_where_the_kind_says_so_and_the_loss_reaches_all_weights(kind: str) -> None:
    made = make(kind)
    found = mark(made, padded=True)
    assert found.boundaries.requires_grad == made.learns_from_segments
    targets = TOKENS == 3 if isinstance(made, SupervisedBoundaries) else None
    loss = made.loss(found, targets)
    assert (loss is None) == (not list(made.parameters()))
    if loss is not None:
        assert loss.shape == (2,) and loss.isfinite().all()
        loss.sum().backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in made.parameters())


def test_kinds_that_mark_segments_need_no_tokens() -> None:
    for kind in BOUNDARIES.names:
        if BOUNDARIES[kind].marks_segments:
            assert make(kind)(HiddenStates(vectors(2, 7, DIM))).boundaries.shape == (2, 7)


def marked(kind: str, tokens: Tensor, **options: object) -> list[list[int]]:
    made = BOUNDARIES.build(kind, options, **SETTING, space_idx=3)
    return made(HiddenStates(torch.zeros(*tokens.shape, DIM), tokens)).boundaries.int().tolist()


def test_every_third_position_ends_a_segment_or_each_space_which_belongs_to_the_word_before_it() -> None:
    assert marked("fixed", torch.zeros(1, 7)) == [[0, 1, 0, 1, 0, 1, 0]]
    assert marked("fixed", torch.zeros(1, 7), factor=3) == [[0, 0, 1, 0, 0, 1, 0]]
    texts = torch.tensor([[5, 6, 3, 7, 3, 3], [5, 5, 5, 5, 5, 5]])
    assert marked("whitespace", texts) == [[0, 0, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0]]


def with_logit(logit: float, kind: str, **options: object) -> SupervisedBoundaries | GumbelBoundaries:
    made = BOUNDARIES.build(kind, options, **SETTING)
    assert isinstance(made, SupervisedBoundaries | GumbelBoundaries)
    torch.nn.init.zeros_(made.predictor.fc2.weight)
    torch.nn.init.constant_(made.predictor.fc2.bias, logit)
    return made


def test_gumbel_draws_boundaries_with_their_probability() -> None:
    made = with_logit(-1.0, "gumbel", temperature=2.0)
    torch.manual_seed(0)
    drawn = made(HiddenStates(torch.zeros(1, 20000, DIM))).boundaries
    assert drawn.mean().item() == pytest.approx(torch.tensor(-1.0).sigmoid().item(), abs=0.01)
    assert made.eval()(HiddenStates(torch.zeros(1, 9, DIM))).boundaries.sum() == 0
    sampling = with_logit(-1.0, "gumbel", evaluation="sample").eval()
    assert 0 < sampling(HiddenStates(torch.zeros(1, 200, DIM))).boundaries.sum() < 200


def test_the_gradient_of_a_drawn_boundary_is_that_of_its_sigmoid() -> None:
    made, gradients = with_logit(0.3, "gumbel", temperature=0.5), []
    for name in ("ours", "by hand"):
        torch.manual_seed(5)
        logit = torch.full((1, 6), 0.3, requires_grad=True)
        made.predictor.forward = lambda x, logit=logit: logit
        if name == "ours":
            out = made(HiddenStates(torch.zeros(1, 6, DIM))).boundaries
        else:
            out = ((logit + torch.rand(1, 6).logit()) / 0.5).sigmoid()
        gradients += torch.autograd.grad(out.sum(), logit)
    torch.testing.assert_close(*gradients)


def test_the_most_extreme_logits_and_angles_give_finite_gradients() -> None:
    alike = torch.ones(1, 50, DIM).index_fill(1, torch.tensor([2]), -1.0)
    for made in (with_logit(-1e4, "gumbel"), with_logit(1e4, "gumbel"), routing()):
        x = alike.clone().requires_grad_()
        found = made(HiddenStates(x))
        loss = made.loss(found)
        assert loss is not None
        (found.boundaries.sum() + loss.sum()).backward()
        assert all(of.grad is not None and of.grad.isfinite().all() for of in (x, *made.parameters()))


@pytest.mark.parametrize(("closed", "length"), [(0, 5), (5, 5), (400, 2000)])
def test_the_prior_is_the_binomial_distribution_and_pushes_towards_its_mean(closed: int, length: int) -> None:
    boundaries = (torch.arange(length + 3) < closed).double()[None].requires_grad_()
    padding_mask = (torch.arange(length + 3) >= length)[None]
    loss = with_logit(0.0, "gumbel", prior=0.3).loss(Segmentation(boundaries, None, padding_mask))
    assert loss is not None
    expected = -Binomial(length, torch.tensor(0.3, dtype=torch.float64)).log_prob(torch.tensor(closed).double())
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    (grad,) = torch.autograd.grad(loss.sum(), boundaries)
    assert (grad[~padding_mask] * (closed - 0.3 * length) > 0).all()


def test_supervised_boundaries_are_above_the_threshold() -> None:
    x = torch.zeros(1, 2, DIM)
    assert with_logit(0.1, "unigram")(HiddenStates(x)).boundaries.tolist() == [[1.0, 1.0]]
    assert with_logit(0.1, "unigram", threshold=0.6)(HiddenStates(x)).boundaries.tolist() == [[0.0, 0.0]]


def test_the_loss_of_supervised_boundaries_is_cross_entropy_of_what_is_known() -> None:
    logits, targets = vectors(2, 4), torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0]])
    padding_mask = torch.tensor([[False] * 4, [False, False, True, True]])
    known = torch.tensor([[True, True, False, True], [True] * 4])
    given = Segmentation(torch.zeros(2, 4), logits, padding_mask)
    each = F.binary_cross_entropy(logits.sigmoid(), targets.float(), reduction="none")
    twice = F.binary_cross_entropy(logits.sigmoid().sigmoid(), targets.float(), reduction="none")
    for options, loss in (({}, each), ({"loss": "twice"}, twice)):
        found = with_logit(0.0, "unigram", **options).loss(given, targets, known)
        torch.testing.assert_close(found, torch.stack([loss[0, [0, 1, 3]].sum(), loss[1, :2].sum()]))


def test_entropy_targets_are_where_a_prediction_is_less_certain_than_those_before() -> None:
    certainty = torch.tensor([[0.0, 2.0, 1.0, 1.0, 0.0, 3.0]])
    logits = torch.stack([certainty, torch.zeros_like(certainty)], dim=2).requires_grad_()
    for window, expected in ((1, [1, 0, 1, 0, 1, 0]), (2, [1, 0, 0, 0, 1, 0])):
        made = BOUNDARIES.build("entropy", {"window": window}, **SETTING)
        assert isinstance(made, EntropyBoundaries)
        targets = made.targets(logits)
        assert targets.int().tolist() == [expected] and not targets.requires_grad


def routing(**options: object) -> RoutingBoundaries:
    made = BOUNDARIES.build("routing", options, **SETTING)
    assert isinstance(made, RoutingBoundaries)
    return made


def test_a_boundary_is_routed_where_a_vector_turns_away_from_the_one_before() -> None:
    x = torch.zeros(1, 6, DIM)
    # the same, longer; at a right angle; opposite; nearly the same
    x[0, :, 0] = torch.tensor([1.0, 3.0, 0.0, 0.0, 0.2, 1.0])
    x[0, :, 1] = torch.tensor([0.0, 0.0, 1.0, -2.0, -1.0, 0.0])
    found = routing()(HiddenStates(x))
    assert found.probabilities is not None
    angles = torch.tensor([[-1.0, 1.0, 0.0, -1.0, 1 / 1.04**0.5, 0.2 / 1.04**0.5]])
    torch.testing.assert_close(found.probabilities, (1 - angles) / 2, rtol=0, atol=2e-6)
    assert found.boundaries.tolist() == [[1, 0, 0, 1, 0, 0]]


def test_routing_and_its_gradients_are_those_of_a_loop() -> None:
    made, x = routing().double(), vectors(2, 7, DIM).double()
    padding_mask = torch.arange(7) >= torch.tensor([[7], [4]])
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(vectors(DIM, DIM, seed=1), alpha=0.3)
    x.requires_grad_()
    found = made(HiddenStates(x, padding_mask=padding_mask))
    rows, losses = [], []
    for row, length in enumerate((7, 4)):
        p = [torch.ones(()).double()]
        for t in range(1, 7):
            q, k = made.query @ x[row, t - 1], made.key @ x[row, t]
            p.append((1 - q @ k / (q.norm() * k.norm())) / 2)
        rows.append(torch.stack(p))
        share = sum(each > 0.5 for each in p[:length]) / length
        mean = sum(p[:length]) / length
        losses.append(length * 0.03 * 6 / 5 * (5 * share * mean + (1 - share) * (1 - mean)))
    assert found.probabilities is not None
    torch.testing.assert_close(found.probabilities, torch.stack(rows), rtol=0, atol=2e-6)
    assert found.boundaries.equal(((torch.stack(rows) > 0.5) & ~padding_mask).double())
    loss = made.loss(found)
    assert loss is not None
    torch.testing.assert_close(loss, torch.stack(losses), rtol=0, atol=1e-5)
    of = [x, made.query, made.key]
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), of) for each in (loss, torch.stack(losses))))


def test_a_spike_is_above_all_of_the_window_and_ties_are_none() -> None:
    x = torch.tensor([[1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 3.0]])
    assert spikes(x, 1).int().tolist() == [[1, 1, 0, 1, 0, 0, 1]]
    assert spikes(x, 2).int().tolist() == spikes(x, 9).int().tolist() == [[1, 1, 0, 0, 0, 0, 1]]
    assert spikes(torch.zeros(2, 1), 3).tolist() == [[True], [True]]


def test_it_equals_a_loop_also_where_values_repeat() -> None:
    x = torch.randint(0, 4, (5, 30), generator=torch.Generator(torch.get_default_device()).manual_seed(0)).float()
    for window in range(1, 5):
        for row, found in zip(x.tolist(), spikes(x, window).tolist(), strict=True):
            assert found == [all(row[i] > before for before in row[max(0, i - window) : i]) for i in range(30)]
