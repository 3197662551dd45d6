"""
Which split criterion sees through a shortcut?
==============================================

A shortcut separates the classes in every era of the training set, each time in another
way, and is gone afterwards. Beside it is a spiral: hard to learn, and true everywhere.
Boosting by the pooled gain takes the shortcut. Criteria that compare eras at each split
can take the spiral, and on data where eras do not differ they pay for their caution.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# The data
# --------
#
# :func:`~sklearn_era.datasets.make_synthetic_memorization` draws 16 eras. The first two
# of its 18 features are the spiral. On each of the others, the classes swap sides from
# era to era.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_era.datasets import make_synthetic_memorization
from sklearn_era.ensemble import HistGradientBoostingClassifier

data = make_synthetic_memorization(random_state=0)

fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, columns in zip(axes, ((0, 1), (2, 3)), strict=True):
    ax.scatter(*data.X_train[:, columns].T, c=data.y_train, cmap="coolwarm", s=1)
    ax.set(xlabel=data.feature_names[columns[0]], ylabel=data.feature_names[columns[1]])
fig.suptitle("The spiral, and two of the 16 features of the shortcut")

# %%
# Three criteria
# --------------
#
# All with the same trees. ``"era"`` takes the mean over eras of the gain within each,
# ``"directional"`` counts the eras that agree on which side of the split predicts more.
# ``rule="every_era"`` is the paper's: each split leaves rows of every era on both
# sides, and all of them are compared. By default only splits with half of the largest
# gain are, and next to the shortcut the spiral has none.

criteria = ("gain", "era", "directional")


def make_model(criterion, coverage=1.0, gain_share=0.0):
    return HistGradientBoostingClassifier(
        split_criterion=criterion,
        # The pooled gain needs neither.
        min_era_coverage=coverage,
        min_gain_share=gain_share,
        max_iter=50,
        max_depth=10,
        max_leaf_nodes=32,
        learning_rate=1,
        early_stopping=False,
    )


X, y, eras = data.X_train, data.y_train, data.eras_train
models = {name: make_model(name).fit(X, y, eras=eras) for name in criteria}

# %%
# Decision surfaces
# -----------------
#
# The probability of class 1 over the plane of the spiral, with the shortcut at 0, which
# is between the classes. Nothing of the spiral is left in the model of the pooled gain.

sides = [np.linspace(x.min(), x.max(), 100) for x in X[:, :2].T]
plane = np.zeros((100 * 100, X.shape[1]))
plane[:, :2] = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
style = {"cmap": "coolwarm", "levels": np.linspace(0, 1, 11)}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (criterion, model) in zip(axes, models.items(), strict=True):
    ax.contourf(*sides, model.predict_proba(plane)[:, 1].reshape(100, 100), **style)
    ax.set_title(f"{criterion}: {model.score(data.X_test, data.y_test):.2f}")
fig.suptitle("Probability of class 1, and accuracy on the test set")

# %%
# Where the pooled gain is as good, or better
# -------------------------------------------
#
# Rows held out of the *training* eras still have the shortcut, and there the pooled
# gain makes no mistake. In a second data set there is no shortcut, and eras do not
# differ: the criteria that compare them see fewer rows to each decision, and must leave
# a row of every era on both sides of a split. ``min_era_coverage=0.5`` requires half of
# them, the defaults a tenth, and half of the gain.

is_kept = np.arange(data.y_train.size) % 4 > 0
alike = make_synthetic_memorization(
    n_shortcut_features=0, n_samples_per_era=100, radial_noise=0.06, random_state=0
)
rows = {
    "shortcut gone": [m.score(data.X_test, data.y_test) for m in models.values()],
    "rows of the same eras": [],
    "eras alike": [],
    "eras alike, 0.5": [],
    "eras alike, default": [],
}
for criterion in criteria:
    model = make_model(criterion).fit(X[is_kept], y[is_kept], eras=eras[is_kept])
    rows["rows of the same eras"].append(model.score(X[~is_kept], y[~is_kept]))
    rules = (1.0, 0.0), (0.5, 0.0), (0.1, 0.5)
    for name, rule in zip(list(rows)[2:], rules, strict=True):
        model = make_model(criterion, *rule)
        model.fit(alike.X_train, alike.y_train, eras=alike.eras_train)
        rows[name].append(model.score(alike.X_test, alike.y_test))

print(f"{'accuracy':26}", *(f"{criterion:>12}" for criterion in criteria))
for name, scores in rows.items():
    print(f"{name:26}", *(f"{score:12.3f}" for score in scores))

fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for i, criterion in enumerate(criteria):
    scores = [row[i] for row in rows.values()]
    ax.bar(np.arange(len(rows)) + 0.27 * (i - 1), scores, width=0.25, label=criterion)
ax.set(ylabel="accuracy", ylim=(0.4, 1.02))
ax.set_xticks(range(len(rows)), rows)
ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.15))
plt.show()
