"""
What can serve as eras where none are given?
============================================

Criteria that compare eras need eras. Where the data have no label for them, time or the
circumstances can make some. Whether that helps depends on whether what differs between
the eras so made is what will differ later.
"""

# %%
# Effects that change with the circumstances
# ------------------------------------------
#
# Six regimes follow one another. The effect of ``x0`` is the same in all; that of
# ``x1`` is not, and in the test set it is reversed. Nobody has written down the
# regimes, but rows are in order, and two columns ``context`` describe the
# circumstances.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.environments import time_blocks

rng = np.random.default_rng(0)
n_regimes, n_rows = 6, 4800
regimes = np.repeat(np.arange(n_regimes), n_rows // n_regimes)
effects = np.array([2.0, 1.5, -1.0, 2.0, -1.0, 1.5])
context = 3 * rng.normal(size=(n_regimes, 2))[regimes]
context += 0.3 * rng.normal(size=context.shape)
X = rng.normal(size=(n_rows, 5))
y = X[:, 0] + effects[regimes] * X[:, 1] + rng.normal(size=n_rows)
X_test = rng.normal(size=(n_rows, 5))
y_test = X_test[:, 0] - 1.2 * X_test[:, 1] + rng.normal(size=n_rows)


def test_score(criterion, eras):
    # All eras, or no split: a shortcut can have most of the gain, and by default only
    # such splits are compared. The pooled gain needs neither.
    model = HistGradientBoostingRegressor(
        split_criterion=criterion,
        min_era_coverage=1.0,
        min_gain_share=0.0,
        early_stopping=False,
    )
    return model.fit(X, y, eras=eras).score(X_test, y_test)


# %%
# :func:`~sklearn_era.environments.time_blocks` cuts time into blocks, and
# scikit-learn's k-means makes eras of clusters: of the context, which the model does
# not get. As a control there are labels at random.

time = np.arange(n_rows)
labels = {
    "one era: gain": None,
    "at random": rng.permutation(regimes),
    "clusters of the features": KMeans(6, random_state=0).fit_predict(X),
    "4 blocks of time": time_blocks(time, 4),
    "10 blocks of time": time_blocks(time, 10),
    "clusters of the context": KMeans(6, random_state=0).fit_predict(context),
    "the regimes": regimes,
}
scores = {}
for name, eras in labels.items():
    criterion = "gain" if eras is None else "invariant"
    scores[name] = test_score(criterion, eras)
    print(f"{name:26} R² {scores[name]:6.2f}")

# %%
# Blocks need not meet the regimes exactly. The features do not give away the regimes.

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.barh(list(scores), list(scores.values()), color="tab:blue")
ax.invert_yaxis()
ax.set(xlabel="R² on the test set")
plt.show()
