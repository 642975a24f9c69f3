import numpy as np
import pytest

from pyramidions.scoring.scores import pooled, pooled_difference


def test_the_mean_is_over_seeds_and_documents() -> None:
    assert pooled(np.array([[1.0, 2.0], [3.0, 6.0]])).mean == 3.0


def test_one_seed_gives_the_interval_over_documents() -> None:
    values = np.arange(100.0)[None]
    found = pooled(values)
    # The standard error of the mean is 28.9 / 10.
    assert found.low == pytest.approx(49.5 - 1.96 * 2.89, abs=0.6)
    assert found.high == pytest.approx(49.5 + 1.96 * 2.89, abs=0.6)


def test_seeds_that_differ_widen_the_interval_even_where_all_documents_are_alike() -> None:
    assert pooled(np.ones((3, 50))) == (1, 1, 1)
    found = pooled(np.repeat([[1.0], [2.0], [3.0]], 50, axis=1))
    assert found == (2, 1, 3)


def test_systems_are_paired_by_document() -> None:
    documents = np.random.default_rng(3).normal(size=(1, 40)) * 100
    assert pooled_difference(documents + 0.5, documents) == pytest.approx((0.5, 0.5, 0.5))


def test_one_system_may_have_more_seeds() -> None:
    found = pooled_difference(np.full((3, 4), 2.0), np.full((2, 4), 1.0))
    assert found == (1, 1, 1)


def test_other_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="^Both must have the same documents, but have 3 and 2.$"):
        pooled_difference(np.ones((1, 3)), np.ones((1, 2)))
