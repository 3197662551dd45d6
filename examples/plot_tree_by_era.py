"""
Which splits hold in every month?
=================================

A tree shows a model, and not when it holds. Here each split has an arrow for each month
below it, which points to the side that predicts more there. Gains, permutations and
SHAP values by month follow.
"""

# %%
# Twelve months, and an effect that turns
# ---------------------------------------
#
# The target grows with ``income`` in all months, and is higher in two of the regions.
# The effect of ``rate`` is turned round from month 10 on. Over all months it is the
# largest, and so a plain model splits by it first.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_era.criteria import Directional
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import (
    EraShapDisplay,
    era_feature_importances,
    era_permutation_importance,
    export_text,
    plot_tree,
    shap_values,
)

rng = np.random.default_rng(0)
months = np.repeat(np.arange(1, 13), 300)
X = pd.DataFrame(rng.normal(size=(3600, 2)), columns=["income", "rate"])
X["region"] = pd.Categorical(rng.choice(["north", "south", "east", "west"], 3600))
effect = np.where(months < 10, 2, -2)
y = X["income"] + effect * X["rate"] + X["region"].isin(["north", "west"])
y += rng.normal(size=3600)
options = {"max_iter": 20, "max_leaf_nodes": 7, "early_stopping": False}
plain = HistGradientBoostingRegressor(**options).fit(X, y)

# %%
# The tree, month by month
# ------------------------
#
# Arrows of a split by ``income`` or ``region`` point to one side. Those of a split
# by ``rate`` point to the right for nine months, and to the left for the last three:
# the model has learnt the opposite of what a next month will have.

plot_tree(plain, X, y, eras=months, max_depth=2)

# %%
# More than 30 eras are drawn as a histogram.

tenths = 10 * months + np.arange(3600) % 10
plot_tree(plain, X, y, eras=tenths, max_depth=1)

# %%
# The same as text, here of a model whose splits every month has to agree on. It does
# not use ``rate``.

careful = HistGradientBoostingRegressor(
    split_criterion=Directional(rule="every_era"), **options
).fit(X, y, eras=months)
print(export_text(careful, X, y, eras=months, max_depth=1))

# %%
# Gains, and what they are worth
# ------------------------------
#
# The gain of a split is how much a feature explains within a month, in either
# direction. Permuted in months that the model has not seen, ``rate`` helps in the
# first nine months and does harm in the last three.

gains = era_feature_importances(
    plain, X, y, eras=months, normalize=True, as_frame=True
).importances
permuted = era_permutation_importance(
    plain, X, y, eras=months, random_state=0, as_frame=True
).importances
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, table, title in zip(
    axes, (gains, permuted), ("share of gains", "fall of R² if permuted"), strict=True
):
    table.plot(ax=ax, marker=".", title=title, xlabel="month")
axes[1].axhline(0, color="gray", linewidth=0.5)
plt.show()

# %%
# SHAP values of predictions, by month
# ------------------------------------
#
# SHAP values add up to the prediction of a row. Their means by month show what moves
# predictions where rows change: here incomes grow, and the other columns stay.

growing = X.assign(income=X["income"] + (months - 6) / 6)
summary = shap_values(plain, growing).by_era(months)
fig, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
for ax, field in zip(axes, ("mean", "mean_abs"), strict=True):
    EraShapDisplay(summary).plot(ax, field=field)
plt.show()
