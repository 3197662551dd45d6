"""Fits of rule ensembles, whose time goes into the beam of each round."""

import numpy as np

from sklearn_era.rules import RuleEnsembleClassifier

from . import ensemble

PENALTIES = ["none", "columns", "variance"]


class RulesFit(ensemble.Fit):
    """20 rounds on 20 columns, without a penalty and with one of either kind."""

    param_names = ("n_bins", "penalty", "n_rows")
    params = ([8, 32], PENALTIES, [40_000])
    timeout = 600

    def setup(self, n_bins, penalty, n_rows):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(n_rows, 20))
        self.y = self.X[:, :5].sum(axis=1) + rng.normal(size=n_rows) > 0
        self.eras = rng.integers(10, size=n_rows)
        self.model = RuleEnsembleClassifier(20, n_bins=n_bins, random_state=0)
        if penalty == "columns":
            self.model.set_params(feature_penalty=rng.uniform(size=20))
        elif penalty == "variance":
            self.model.set_params(variance_penalty=0.1)

    def fit(self):
        return self.model.fit(self.X, self.y, eras=self.eras)
