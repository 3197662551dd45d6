"""
What kind of drift is it?
=========================

Before there is a model of eras: do features move, do the newest rows differ from the
others, and do old data still help? Three measures, and their blind spots.
"""

# %%
# Two kinds of drift
# ------------------
#
# Twelve months of 300 rows. The feature ``age`` grows from month to month, and does
# nothing to the target: its drift is visible, and harmless. The effect of ``rate`` is
# turned round from month 7 on, and its values are distributed as before: its drift is
# invisible, and harmful.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import StratifiedKFold

from sklearn_era.criteria import Directional
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import domain_classifier_auc, support_match
from sklearn_era.model_selection import HoldoutCurveDisplay

rng = np.random.default_rng(0)
names = ["income", "age", "rate", "noise"]
months = np.repeat(np.arange(1, 13), 300)
X = pd.DataFrame(rng.normal(size=(months.size, len(names))), columns=names)
X["age"] += 0.5 * months
effect = np.where(months < 7, 1, -1)
y = X["income"] + effect * X["rate"] + rng.normal(size=months.size)
is_new = months > 10

# %%
# Do the months share the features' values?
# -----------------------------------------
#
# The support match of a feature is the share of its bins that a month covers, on
# average. By ``rule="every_era"`` splits leave rows of every month on both
# sides, so that they cannot use ``age`` well, however informative it is.

result = support_match(X, eras=months, min_samples=5, as_frame=True)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
result.match.plot.barh(ax=axes[0], xlabel="support match")
image = axes[1].imshow(result.by_era.T, vmin=0, vmax=1, aspect="auto")
axes[1].set(xlabel="month", yticks=range(len(names)), yticklabels=names)
fig.colorbar(image, label="share of bins covered")
print(result.match.round(2).to_dict())

# %%
# Do new rows differ from old ones?
# ---------------------------------
#
# A classifier learns to separate the last two months from the others. 0.5 is guessing.
# With ``age`` it is easy. Without, it is guesswork, though the effect of ``rate`` has
# changed its sign: the classifier looks at the features, not at what they do.

no_age = [name for name in names if name != "age"]
for columns in (names, no_age):
    print(columns, round(domain_classifier_auc(X[columns], is_new, random_state=0), 3))
folds = StratifiedKFold(5, shuffle=True, random_state=0)
train, test = next(folds.split(X, is_new))
classifier = HistGradientBoostingClassifier(early_stopping=False)
classifier.fit(X.iloc[train], is_new[train])
told_by = permutation_importance(
    classifier, X.iloc[test], is_new[test], scoring="roc_auc", random_state=0
)
fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.barh(names, told_by.importances_mean)
ax.set_xlabel("loss of AUC where permuted")

# %%
# Do old data still help?
# -----------------------
#
# This is the measure that looks at the target. Models are trained on the latest two of
# the months before the test, the latest three, and so on, and scored on months 11 and
# 12. The curve stays up as far as month 7, and falls as soon as months of the other
# effect come in. With ``age`` it hardly falls, as a model can date rows by it: here the
# harmless drift repairs the harmful one.

plain = HistGradientBoostingRegressor(max_iter=50, early_stopping=False)
# In every month or not at all, however much of the gain it has.
careful = HistGradientBoostingRegressor(
    split_criterion=Directional(rule="every_era"),
    max_iter=50,
    early_stopping=False,
)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for label, model, columns in (
    ("gain, all features", plain, names),
    ("gain, without age", plain, no_age),
    ("directional, without age", careful, no_age),
):
    curve = HoldoutCurveDisplay.from_estimator(
        model,
        X[columns],
        y,
        eras=months,
        test_eras=[11, 12],
        param_range=range(2, 11),
        ax=ax,
        score_type="test",
    )
    curve.lines_[0].set_label(label)
    print(f"{label:26}", curve.test_scores.mean(axis=1).round(2).tolist())
ax.set_ylabel("R² in months 11 and 12")
ax.legend()
plt.show()

# %%
# A model of effects that hold in all months gives up ``rate``. On all months that is
# better than the plain model without ``age``, and far worse than the plain model on the
# right window: where old data mislead, look for the window first. To give up ``rate``
# is for those who do not know which way it will turn next.
