"""Gradient-boosted trees that need numpy only."""

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

#: Leaves of a tree, which are the bits of a number.
MOST_LEAVES = 32
_BLOCK = 256  # rows that are rated at a time: their masks stay in the cache


class Trees:
    """Binary trees whose leaves add up to a number, such as the log odds of an event.

    All rows pass all trees at once (QuickScorer, Lucchese et al., SIGIR 2015): a test that fails rules out the leaves
    on its left. Which tests on a feature fail depends on the rank of its value among their thresholds alone, so that
    what they rule out is looked up.

    Args:
        base: the number before the first tree.
        roots: (trees,), int32: the first node of each; its nodes follow, the left child and all below it first.
        feature: (nodes,), int16: what a node tests, -1 for a leaf.
        threshold: (nodes,), float64: rows up to it go left; of a leaf, what it adds.
        features: number of features of a row.
    """

    def __init__(
        self, base: float, roots: np.ndarray, feature: np.ndarray, threshold: np.ndarray, features: int
    ) -> None:
        self.base, self.roots, self.feature, self.threshold, self.features = base, roots, feature, threshold, features

    @classmethod
    def of(cls, fitted: Any) -> "Trees":
        """Return the trees of a HistGradientBoostingClassifier of two classes, or of a Regressor, for full rows."""
        feature: list[int] = []
        threshold: list[float] = []
        roots: list[int] = []
        for (predictor,) in fitted._predictors:
            nodes = predictor.nodes
            roots.append(len(feature))
            waiting = [0]
            while waiting:
                node = nodes[waiting.pop()]
                feature.append(-1 if node["is_leaf"] else int(node["feature_idx"]))
                threshold.append(float(node["value"] if node["is_leaf"] else node["num_threshold"]))
                if not node["is_leaf"]:
                    waiting += [int(node["right"]), int(node["left"])]
        return cls(
            float(np.ravel(fitted._baseline_prediction)[0]),
            np.array(roots, dtype=np.int32),
            np.array(feature, dtype=np.int16),
            np.array(threshold),
            int(fitted.n_features_in_),
        )

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the roots, the features and the thresholds."""
        return self.roots, self.feature, self.threshold

    def check(self) -> None:
        """Raise a ValueError where the nodes are no trees, or test a feature that no row has."""
        tests, _ = self._tables
        if any(test.feature >= self.features for test in tests):
            raise ValueError("trees must test the features of a row")

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of the event whose log odds the numbers are: (rows,), float64."""
        # Trees that fit few examples exactly are surer than float64 can tell.
        return 1 / (1 + np.exp(-self.numbers(rows).clip(-700, 700)))

    def numbers(self, rows: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Return what the leaves add up to for each row of (rows, features): (rows,), float64.

        With ``others``, what `left` returned for the first features, rows hold the last features alone.
        """
        _, leaves = self._tables
        number = np.arange(len(self.roots)) * MOST_LEAVES
        sums = np.full(len(rows), self.base)
        ranks = self._ranks(rows, 0 if others is None else self.features - rows.shape[1])
        for start in range(0, len(rows), _BLOCK):
            here = slice(start, start + _BLOCK)
            left = self._left(ranks, here, len(rows[here]))
            if others is not None:
                left &= others[here]
            # The lowest bit that is left is the leaf: a power of two, whose exponent float32 holds as it is.
            lowest = left & (~left + np.uint32(1))
            leaf = (lowest.astype(np.float32).view(np.int32) >> 23) - 127
            sums[here] += leaves[number + leaf].sum(axis=1)
        return sums

    def left(self, rows: np.ndarray, first: int = 0) -> np.ndarray:
        """Return the leaves that are left after all tests of some features, from ``first``: (rows, trees), uint32."""
        return self._left(self._ranks(rows, first), slice(None), len(rows))

    def _ranks(self, rows: np.ndarray, first: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return, for each tested feature, the leaves left by the rank of a value, and the rank of each row."""
        ranks = []
        for test in self._tables[0]:
            if first <= test.feature < first + rows.shape[1]:
                values = rows[:, test.feature - first].astype(np.float64)
                ranks.append((test.left, np.searchsorted(test.thresholds, values).astype(np.int32)))
        return ranks

    def _left(self, ranks: list[tuple[np.ndarray, np.ndarray]], here: slice, number: int) -> np.ndarray:
        left = np.full((number, len(self.roots)), 2**MOST_LEAVES - 1, dtype=np.uint32)
        masks = np.empty_like(left)
        for table, rank in ranks:
            # All ranks are in the table; with "clip", `take` writes to `out` without a buffer.
            left &= table.take(rank[here], axis=0, out=masks, mode="clip")
        return left

    @cached_property
    def _tables(self) -> "tuple[list[_Tests], np.ndarray]":
        """The tests on each feature, and what leaf `i` of tree `t` adds, at ``t * MOST_LEAVES + i``."""
        leaves = np.zeros(len(self.roots) * MOST_LEAVES)
        by_feature: dict[int, list[tuple[float, int, int]]] = {}
        for tree, (first, stop) in enumerate(_spans(self.roots, len(self.feature))):
            for node, low, middle in _walk(self.feature[first:stop].tolist()):
                if self.feature[first + node] < 0:
                    leaves[tree * MOST_LEAVES + low] = self.threshold[first + node]
                else:
                    out = (1 << middle) - (1 << low)
                    by_feature.setdefault(int(self.feature[first + node]), []).append(
                        (float(self.threshold[first + node]), tree, 2**MOST_LEAVES - 1 - out)
                    )
        return [_tests(feature, each, len(self.roots)) for feature, each in sorted(by_feature.items())], leaves


class _Tests(NamedTuple):
    """All tests on one feature."""

    feature: int  # its number
    thresholds: np.ndarray  # (thresholds,), rising
    # (thresholds + 1, trees), uint32: the leaves that are left if so many thresholds lie below the value.
    left: np.ndarray


def _tests(feature: int, tests: list[tuple[float, int, int]], trees: int) -> _Tests:
    thresholds, rank = np.unique([threshold for threshold, _, _ in tests], return_inverse=True)
    left = np.full((len(thresholds) + 1, trees), 2**MOST_LEAVES - 1, dtype=np.uint32)
    for at, (_, tree, mask) in zip(rank, tests, strict=True):
        left[at + 1, tree] &= np.uint32(mask)
    return _Tests(feature, thresholds, np.bitwise_and.accumulate(left, axis=0))


def _spans(roots: np.ndarray, nodes: int) -> list[tuple[int, int]]:
    ends = [*roots.tolist(), nodes]
    return list(pairwise(ends))


def _walk(feature: list[int]) -> list[tuple[int, int, int]]:
    """Return each node of a tree, its first leaf, and the first one on its right (of a leaf, the next leaf).

    A ValueError says that the nodes are no tree.
    """
    leaves: list[tuple[int, int, int]] = []
    # Tests whose right side is still to come: where they stand in `leaves`.
    waiting: list[int] = []
    leaf = 0
    for node, tested in enumerate(feature):
        leaves.append((node, leaf, leaf + 1))
        if tested >= 0:
            waiting.append(node)
            continue
        leaf += 1
        if waiting:
            # What comes next is on the right of the last one.
            above = waiting.pop()
            leaves[above] = (above, leaves[above][1], leaf)
        elif node + 1 != len(feature):
            raise ValueError("nodes must be trees")
    if waiting or 2 * leaf - 1 != len(feature) or leaf > MOST_LEAVES:
        raise ValueError(f"nodes must be trees of at most {MOST_LEAVES} leaves")
    return leaves
