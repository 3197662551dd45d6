"""Give scikit-learn's search folds of whole eras, scores by era, and a new rule."""

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import gen_batches, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    get_routing_for_object,
)

from .._era_axes import keep_pair, known_order, read_known, with_order
from .._era_routing import routed, takes, with_requests
from .._label_columns import EraColumns
from .._progress import Progress
from .._warnings import listed
from ._out_of_era import check_folds, fit_arguments, fit_folds, groups_for, split_eras
from ._search_rule import best_index, compare_candidates, mean_over_folds
from ._search_scores import (
    EraMean,
    ScorerByEra,
    of_classes,
    tabulate,
    warn_of_undefined,
)
from ._times_and_groups import times_first


class _Candidates:
    """Stands in for a search's estimator, as scikit-learn makes candidates of it:
    `set_params` returns a copy, which takes eras and weights by its own parts.
    """

    def __init__(self, estimator: Any, era_order: Any) -> None:
        self.estimator, self._era_order = estimator, era_order

    def __sklearn_clone__(self) -> Any:
        return self  # `set_params` copies

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    def set_params(self, **params: Any) -> Any:
        model = with_order(self.estimator, self._era_order, **params)
        model = with_requests(model, copy=False)
        model.fit = partial(_fit_candidate, model)
        return model


def _fit_candidate(model: Any, X: Any, *y: Any, **metadata: Any) -> Any:
    """Fit a candidate by its own method, in place of which it has this function."""
    del model.fit
    by_user = _routing_enabled()
    with routed(model):
        return model.fit(X, *y, **_arguments_of(model, metadata, by_user))


def _arguments_of(model: Any, metadata: dict[str, Any], by_user: bool) -> Any:
    """Return the arguments of a candidate's fit, chosen from those of the search's:
    by the candidate's requests if metadata are routed `by_user`.
    """
    if by_user:
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter("EraSearchCV").add(model=model, method_mapping=mapping)
        return router.route_params(caller="fit", params=metadata).model.fit
    others = dict(metadata)
    eras, weights = others.pop("eras"), others.pop("sample_weight", None)
    return others | fit_arguments(model, eras, weights)


class SearchByEra(GridSearchCV):
    """The steps of scikit-learn's search that `EraSearchCV` replaces by its own."""

    # Parameters that are others in a part of a fit.
    param_grid: Any
    cv: Any
    estimator: Any
    verbose: int
    _eras: Any = None  # of rows, in a fit: `EncodedEras`
    _targets: Any = None  # in a fit
    _so_far: Any = None  # in a fit: the candidates tried, and the results of their fits
    _is_last: bool = True  # in a fit: whether all candidates will then have been tried

    def _run_search(
        self, evaluate_candidates: Callable[..., Any], *, callback_ctx: Any = None
    ) -> None:
        """Evaluate the candidates. If `verbose` is 1 and no callbacks follow the
        search, evaluate a few at a time, so that progress can be printed.
        """
        self.estimator = self.estimator.estimator  # of `_Candidates`
        candidates, verbose = [*ParameterGrid(self.param_grid)], self.verbose
        n, n_known = len(candidates), 0
        if verbose != 1 or not n or hasattr(self, "_skl_callbacks"):
            known = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
            super()._run_search(evaluate_candidates, **known)
            return
        self.verbose = 0  # scikit-learn's line would come with each part
        try:
            with Progress("EraSearchCV", verbose, "candidates") as progress:
                progress.expect(n)
                for part in gen_batches(n, effective_n_jobs(self.n_jobs)):
                    self._is_last = part.stop == n
                    try:
                        evaluate_candidates(candidates[part])
                    except ValueError as error:
                        if "fits failed" not in str(error):
                            raise
                        # It refuses a part of which all fits fail: all others are one
                        # part, with the last one in which some did not.
                        tried, out = self._so_far or ([], [])
                        n_out = len(out) // len(tried or [1]) * n_known
                        del out[n_out:], tried[n_known:]
                        self._is_last = True
                        evaluate_candidates(candidates[n_known:])
                        part = slice(part.start, n)
                    last = candidates[part][-1] or "the plain model"
                    progress.step(part.stop - part.start, f"last {last}")
                    if part.stop == n:
                        break
                    n_known = part.start
        finally:
            self.verbose = verbose

    def _check_eras(self, eras: Any, X: Any) -> Any:
        """Return each row's era label; set `era_order_` and `_eras`, the encoded eras.
        Raise ValueError for a scorer that aggregates eras other than by the mean.
        """
        name = "EraSearchCV"
        labels, encoded, is_ordered = read_known(eras, X, self.era_order, name)
        self._eras = encoded
        keep_pair(self, encoded)
        self.era_order_ = "ordered" if is_ordered else "unordered"
        check_folds(self, encoded, is_ordered)
        metric = getattr(self.scoring, "_score_func", None)
        if (aggregation := getattr(metric, "aggregation", "mean")) != "mean":
            raise ValueError(
                f"scoring aggregates eras by {aggregation!r}, and {name} scores them "
                "one by one: make the scorer with aggregation='mean', and pass "
                "choose_by='worst' for the worst era."
            )
        return labels

    def _splits_eras(self) -> bool:
        """Return whether `cv` is a number or None, so that folds have whole eras."""
        return self.cv is None or isinstance(self.cv, Integral)

    def _get_routed_params_for_fit(self, params: dict[str, Any]) -> Any:
        """Return the arguments of splitter and scorer, and those of all fits, of which
        each candidate takes its own. If `cv` is a number or None, set it to a list of
        folds of eras. Put `_Candidates` in the place of the estimator.
        """
        eras, is_routed = params["eras"], _routing_enabled()
        weights = params.get("sample_weight")
        if not is_routed:
            params = {name: x for name, x in params.items() if name != "eras"}
            if self.rule != "best":  # weights that the plain model lacks are an error
                fit_arguments(self.estimator, eras, weights)
        arguments = super()._get_routed_params_for_fit(params)
        of_fit = params if is_routed else {**arguments.estimator.fit, "eras": eras}
        arguments.estimator.fit, of_split = of_fit, arguments.splitter.split
        codes, groups = self._eras.codes, self._eras.groups
        known: Any = codes
        if groups is not None:
            known = EraColumns([codes, groups.codes], calendar=eras.calendar)
        arguments.scorer.score["era_codes"] = known
        is_ordered = self.era_order_ == "ordered"
        if self._splits_eras():
            # In place of scikit-learn's folds of rows.
            self.cv = split_eras(
                self.cv, codes, None, self._eras, is_ordered,
                "EraSearchCV", rows=self._eras.rows_with_weight(weights), gap=self.gap,
                horizon=self.horizon, group=self.group, tests_half=True,
            )  # fmt: skip
        elif of_split.get("groups") is None and (
            not hasattr(self.cv, "split") or takes(self.cv.split, "groups")
        ):
            # Codes of ordered eras: a splitter need not find the order again.
            given = codes if is_ordered else eras
            if groups is not None:
                self.cv = times_first(self.cv)
            of_split["groups"] = groups_for(self.cv, self._eras, given)
        order = known_order(self._eras, is_ordered)
        self.estimator = _Candidates(self.estimator, order)
        self._arguments = self.estimator, of_fit, of_split
        return arguments

    def _explain_failure(self, X: Any, y: Any) -> None:
        """Repeat the first candidate's fits, to raise an error that names the fold."""
        candidates, of_fit, of_split = self._arguments
        first = next(iter(ParameterGrid(self.param_grid)))
        model = candidates.set_params(**clone(first, safe=False))
        del model.fit  # of a whole search
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        folds = [*cv.split(X, y, **of_split)]
        arguments = _arguments_of(model, of_fit, _routing_enabled())
        fit_folds(model, X, y, self._eras, folds, arguments, None)

    def _get_scorers(self, by_era: bool = True) -> tuple[Any, str]:
        """Return the scorer, or the scorers of several metrics, and the metric's name.
        Scorers score era by era or, if not `by_era`, all rows at once.
        """
        scorer, metric = self._default_scorer(), "score"
        if scorer is None:
            scorer, metric = super()._get_scorers()
        raises = self.error_score == "raise"
        by_eras = partial(ScorerByEra, eras=self._eras, raises=raises)
        wrap: Any = by_eras if by_era else of_classes
        if not isinstance(scorer, _MultimetricScorer):
            return wrap(scorer), metric
        wrapped = {name: wrap(one) for name, one in scorer._scorers.items()}
        if not by_era:
            return wrapped, metric
        scorer._scorers = wrapped
        return scorer, metric

    def _default_scorer(self) -> Any:
        """Return the scorer to use if `scoring` is None; None if `scoring` is set, or
        if the estimator's own `score` is to be used.
        """
        if self.scoring is not None:
            return None
        if is_classifier(self.estimator) and hasattr(self.estimator, "predict_proba"):
            scorer = get_scorer("neg_log_loss")
        elif is_regressor(self.estimator):
            scorer = get_scorer("neg_mean_squared_error")
        else:
            return None
        if _routing_enabled():  # nobody else can make its request
            of_score = getattr(get_routing_for_object(self.estimator), "score", None)
            asked = of_score and of_score.requests.get("sample_weight")
            scorer.set_score_request(sample_weight=True if asked is None else asked)
        return scorer

    def _with_plain(self) -> Any:
        """Return the grids after a first grid for the plain model, which has the
        estimator's own value of each parameter in the grids.
        """
        grid = self.param_grid
        grids = [grid] if isinstance(grid, Mapping) else list(grid)
        own, tried = self.estimator.get_params(), set().union(*grids)
        return [{name: [own[name]] for name in tried if name in own}, *grids]

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> dict[str, Any]:
        """Return `cv_results_` with the columns of the rule; set `era_scores_`."""
        self._so_far = candidate_params, out
        if not self._is_last:
            return {}  # of some candidates: warnings are of all
        results = super()._format_results(candidate_params, n_splits, out, more_results)
        scores, metric, tables = [fit["test_scores"] for fit in out], self.refit, {}
        if not (is_multimetric := isinstance(scores[0], dict)):
            scores, metric = [{"score": score} for score in scores], "score"
        for name in scores[0]:
            of_metric = [score[name] for score in scores]
            tables[name], self._test_codes = tabulate(of_metric, n_splits)
            shown = self.scoring if isinstance(self.scoring, str) else name
            warn_of_undefined(of_metric, self._eras.labels, shown)
            if name == metric:
                self._folds = [of_metric[k::n_splits] for k in range(n_splits)]
        by_era = {name: mean_over_folds(table) for name, table in tables.items()}
        self.era_scores_ = by_era if is_multimetric else by_era["score"]
        if isinstance(metric, str) and metric in tables:
            is_ordered = self.era_order_ == "ordered"
            results |= compare_candidates(tables[metric], self.rule, is_ordered)
            results["qualifies"] &= np.isfinite(results[f"mean_test_{metric}"])
        return results

    def _select_best_index(
        self, refit: bool | str | Callable[..., Any], refit_metric: str, results: Any
    ) -> int:
        """Return the best candidate's index, by `refit` if callable, else by the rule.
        Raise ValueError unless the plain model has a score in all folds or, with the
        rule "best", some candidate has one in all folds.
        """
        if callable(refit):
            return super()._select_best_index(refit, refit_metric, results)
        names = [f"split{k}_test_{refit_metric}" for k in range(len(self._folds))]
        is_scored = np.isfinite([results[name] for name in names])
        who = "No candidate can"
        if self.rule == "one_standard_error":
            who = "The plain model, with which candidates are compared, cannot"
            is_scored = is_scored[:, :1]
        if not is_scored.all(axis=0).any():
            failed = np.flatnonzero(~is_scored.all(axis=1))
            shown = f"fold(s) {listed(failed + 1)} of {len(names)}"
            scores = [score for k in failed for score in self._folds[k]]
            why = f"a fit or a score fails in {shown}; pass error_score='raise' to see "
            why += "why"
            if all(isinstance(score, EraMean) for score in scores):
                codes = np.unique(np.concatenate([score.codes for score in scores]))
                why = f"the score is undefined in every era of {shown}"
                why += f"{self._lacks(codes)}; merge eras, or pass a scoring that "
                why += "eras of one class have"
            raise ValueError(f"{who} be fitted and scored in all folds: {why}.")
        return best_index(results, self.choose_by)

    def _lacks(self, codes: NDArray[Any]) -> str:
        """Return a clause for an error message: the classes that some eras lack."""
        if not is_classifier(self.estimator):
            return ""
        targets, eras = np.asarray(self._targets), self._eras.codes
        lost = [
            label
            for label in np.unique(targets)
            if not np.isin(codes, eras[targets == label]).all()
        ]
        return f", of which some lack the class(es) {listed(lost)}" if lost else ""

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags
