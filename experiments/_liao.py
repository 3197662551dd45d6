"""The invariant random forests of Liao, Wu and Yan (2024), section 5, and what counts.

Every forest is one of the package's. scikit-learn's random forests, which stand beside
them as the paper's RF, have defaults but for the number of trees, the depth and the
rows of a leaf: a classifier draws the root of the number of features for each split, a
regressor looks at all of them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era.criteria import Invariant
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    InvariantForestClassifier,
    InvariantForestRegressor,
)

# Section 5.1: the penalties, and the deepest tree of each kind of task.
PENALTIES = (1, 5, 10)
N_TREES = 50
DEPTH_OF_CLASSIFIERS = 10
DEPTH_OF_REGRESSORS = 20

RANDOM_FOREST = "RF"

# Table 3's scores, and ours beside them.
STABLE = "splits on stable"
ENVIRONMENTAL = "splits on environmental"
SPLIT_SHARE = "stable share of splits"
GAIN_SHARE = "stable share of gain"

# Which splits there are. The paper does not treat eras without a row in a node, or on a
# side of the split. The first rule requires every era on both sides, and a node without
# it is a leaf. With the other one an era is enough, and eras that are not on both sides
# have no part in the penalty. Without a penalty there is no rule.
EVERY_ERA = "every era"
ANY_ERA = "any era"
COVERAGE = {EVERY_ERA: 1.0, ANY_ERA: 1e-6}


# A penalty that only settles ties. What it changes, the rule of coverage does.
COVERAGE_ALONE = 1e-9


def irf(penalty: float) -> str:
    """The name of a forest in the tables."""
    return "coverage alone" if penalty == COVERAGE_ALONE else f"IRF ({penalty})"


def invariant_classifier(penalty: float, **parameters: Any) -> EraForestClassifier:
    """The paper's forest for classes.

    The paper's λ counts Gini impurity, twice the squared error that the forest counts.
    """
    settings: dict[str, Any] = {
        "n_estimators": N_TREES,
        "max_depth": DEPTH_OF_CLASSIFIERS,
        **parameters,
    }
    criterion = Invariant(penalty=penalty / 2, statistic="ratio")
    return InvariantForestClassifier(split_criterion=criterion, **settings)


def invariant_regressor(
    penalty: float, statistic: str = "effect", **parameters: Any
) -> EraForestRegressor:
    """The paper's forest for numbers; its λ and the package's are the same."""
    settings: dict[str, Any] = {
        "n_estimators": N_TREES,
        "max_depth": DEPTH_OF_REGRESSORS,
        **parameters,
    }
    criterion = Invariant(penalty=penalty, statistic=statistic)
    return InvariantForestRegressor(split_criterion=criterion, **settings)


def split_frequencies(
    forest: EraForestClassifier | EraForestRegressor,
) -> NDArray[np.float64]:
    """How often each feature is split on, by the share of the rows that it splits.

    Section 5.2, table 3: each split adds n_m / n to its feature, the rows of its node
    among those of the tree. All features together have the mean depth of the rows.
    """
    frequencies = np.zeros(forest.n_features_in_)
    for (tree,) in forest._predictors:
        splits = tree.nodes[tree.nodes["is_leaf"] == 0]
        shares = splits["count"] / tree.nodes["count"][0]
        np.add.at(frequencies, splits["feature_idx"], shares)
    return frequencies / len(forest._predictors)


def importances(
    forest: EraForestClassifier | EraForestRegressor, n_stable: int
) -> dict[str, float]:
    """Table 3's importances, and the stable (first) features' part of those by gain."""
    frequencies = split_frequencies(forest)
    return {
        **frequency_scores(
            float(frequencies[:n_stable].sum()), float(frequencies[n_stable:].sum())
        ),
        GAIN_SHARE: float(forest.feature_importances_[:n_stable].sum()),
    }


def frequency_scores(stable: float, environmental: float) -> dict[str, float]:
    """Table 3's pair of frequencies, ours or the paper's, by score, and their ratio.

    `SPLIT_SHARE` does not change with the depth of the trees, as the frequencies do; it
    is NaN where nothing was split.
    """
    total = stable + environmental
    return {
        STABLE: stable,
        ENVIRONMENTAL: environmental,
        SPLIT_SHARE: stable / total if total > 0 else float("nan"),
    }
