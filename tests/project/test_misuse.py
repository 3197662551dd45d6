"""Estimators under misuse: no call may crash, or change predictions in silence.

A machine draws calls of every sort, right and wrong ones, and keeps beside the
estimator what it has to answer: what a fresh estimator does that was fitted to the same
rows, until the next fit that succeeds.
"""

import copy
import pickle
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from helpers import misuse
from helpers.callbacks import Hook
from helpers.grids import slow
from helpers.misuse import BOOSTERS, FAULTS, ROWS, Interrupt, make_estimators, run_a_few
from sklearn_era.model_files import load_model, save_model

# Subclasses of these two are all that a wrong call may raise.
REFUSALS = (ValueError, TypeError)
METHODS = ("predict", "predict_proba", "decision_function", "staged_predict", "score")
some_rows = st.sampled_from(sorted(ROWS))


def answer(estimator, method, rows):
    """The result of a method for some rows; iterators as lists."""
    if method == "score":
        arguments = rows.arguments(estimator)
        return estimator.score(arguments["X"], arguments["y"])
    result = getattr(estimator, method)(rows.X)
    return list(result) if method.startswith("staged") else result


def answers(estimator, rows):
    methods = [name for name in METHODS if hasattr(estimator, name)]
    found = {name: answer(estimator, name, rows) for name in methods}
    for name in ("classes_", "n_features_in_", "feature_names_in_", "n_iter_"):
        if hasattr(estimator, name):
            found[name] = getattr(estimator, name)
    return found


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def refused(call, *arguments, **named):
    """The error of a call that has to be refused, in words."""
    with pytest.raises(REFUSALS) as caught:
        call(*arguments, **named)
    assert str(caught.value).strip()
    return caught.value


def attempt(call, *arguments, catch=REFUSALS, **named):
    try:
        return call(*arguments, **named), None
    except catch as error:
        return None, error


class Misuse(RuleBasedStateMachine):
    """One estimator, and what it has to answer: `rows` are those of the last fit."""

    kind: str

    def __init__(self):
        super().__init__()
        self._ignored = warnings.catch_warnings()
        self._ignored.__enter__()
        warnings.simplefilter("ignore")
        self.estimator = make_estimators()[self.kind]
        self.rows = self.expected = None

    def teardown(self):
        self._ignored.__exit__(None, None, None)

    @invariant()
    def answers_are_those_of_the_last_fit(self):
        if self.rows is None:
            error = refused(self.estimator.predict, ROWS["narrow"].X)
            assert isinstance(error, NotFittedError)
        else:
            assert_same(answers(self.estimator, self.rows), self.expected)

    def _is_fitted(self):
        return self.rows is not None

    def _trees(self):
        return misuse.trees_parameter(self.estimator)

    def _take(self, rows, reference):
        """Expect from here on what another estimator answers."""
        self.rows, self.expected = rows, answers(reference, rows)

    def _fit_beside(self, reference, rows):
        for estimator in (reference, self.estimator):
            estimator.fit(**rows.arguments(estimator))
        self._take(rows, reference)

    @rule(name=some_rows)
    def fit(self, name):
        self._fit_beside(clone(self.estimator), ROWS[name])

    @precondition(_trees)
    @rule(names=st.lists(some_rows, min_size=2, max_size=3))
    def fit_at_once(self, names):
        """In a thread of its own, beside other fits."""
        fits = [(clone(self.estimator), ROWS[name]) for name in names]
        references = [clone(x).fit(**rows.arguments(x)) for x, rows in fits]
        fits[0] = self.estimator, ROWS[names[0]]
        with ThreadPoolExecutor(len(fits)) as pool:
            list(pool.map(lambda fit: fit[0].fit(**fit[1].arguments(fit[0])), fits))
        for (estimator, rows), reference in zip(fits, references, strict=True):
            assert_same(answers(estimator, rows), answers(reference, rows))
        self._take(fits[0][1], references[0])

    @rule(name=some_rows, fault=st.sampled_from(sorted(FAULTS)))
    def fit_with_a_fault(self, name, fault):
        argument, spoil = FAULTS[fault]
        arguments = ROWS[name].arguments(self.estimator)
        arguments[argument] = spoil(arguments.get(argument))
        refused(self.estimator.fit, **arguments)

    @rule(name=some_rows, data=st.data())
    def fit_with_a_bad_parameter(self, name, data):
        bad = misuse.bad_parameters(self.estimator)
        parameter = data.draw(st.sampled_from(sorted(bad)))
        before = self.estimator.get_params()[parameter]
        arguments = ROWS[name].arguments(self.estimator)
        self.estimator.set_params(**{parameter: bad[parameter]})
        refused(self.estimator.fit, **arguments)
        self.estimator.set_params(**{parameter: before})

    @precondition(lambda self: self._is_fitted() and self._trees())
    @rule(name=some_rows, n_more=st.integers(-1, 2))
    def warm_start(self, name, n_more):
        rows, parameter = ROWS[name], self._trees()
        n_trees = self.estimator.get_params()[parameter]
        self.estimator.set_params(
            warm_start=True, **{parameter: max(1, self.estimator.n_iter_ + n_more)}
        )
        if rows.is_like(self.rows, self.estimator) and (
            n_more >= 0 or self.estimator.n_iter_ == 1
        ):
            self._fit_beside(copy.deepcopy(self.estimator), rows)
        else:
            refused(self.estimator.fit, **rows.arguments(self.estimator))
        self.estimator.set_params(warm_start=False, **{parameter: n_trees})

    @rule(name=some_rows, share=st.floats(0, 1), is_warm=st.booleans())
    def interrupt(self, name, share, is_warm):
        rows, parameter = ROWS[name], self._trees()
        if is_warm:
            goes_on = parameter and self._is_fitted()
            if not (goes_on and rows.is_like(self.rows, self.estimator)):
                return
            n_trees = self.estimator.get_params()[parameter]
            n_more = self.estimator.n_iter_ + 2
            self.estimator.set_params(warm_start=True, **{parameter: n_more})
        before = copy.deepcopy(self.estimator)
        reference = copy.deepcopy(self.estimator)
        arguments = rows.arguments(self.estimator)
        with Interrupt().watch() as whole:
            reference.fit(**arguments)
        interrupt = Interrupt(at=1 + int(share * (whole.n_calls - 1)))
        with interrupt.watch():
            _, error = attempt(self.estimator.fit, **arguments, catch=KeyboardInterrupt)
        if error is None:
            assert interrupt.place is None, f"{interrupt.place} swallows an interrupt"
            self._take(rows, reference)
        else:
            note(f"interrupted in {interrupt.place}")
            self._expect_whole_iterations(rows, before)
        if is_warm:
            self.estimator.set_params(warm_start=False, **{parameter: n_trees})

    def _expect_whole_iterations(self, rows, before):
        """After an interrupt: the model of before, or one of fewer iterations."""
        predictors = vars(self.estimator).get("_predictors")
        if (
            not isinstance(self.estimator, BOOSTERS)
            or predictors in (None, [], vars(before).get("_predictors"))
            or self._answers_as_before()
        ):
            return  # the invariant compares it with the model of before
        n_trees = {len(iteration) for iteration in predictors}
        assert n_trees == {self.estimator.n_trees_per_iteration_}
        n_whole = before.get_params()["max_iter"]
        before.set_params(max_iter=self.estimator.n_iter_)
        before.fit(**rows.arguments(before)).set_params(max_iter=n_whole)
        self._take(rows, before)

    def _answers_as_before(self):
        if self.rows is None:
            return False
        found, error = attempt(answers, self.estimator, self.rows)
        return not (
            error or attempt(assert_same, found, self.expected, catch=AssertionError)[1]
        )

    @precondition(lambda self: hasattr(self.estimator, "set_callbacks"))
    @rule(name=some_rows, n_before=st.integers(0, 3), is_interrupt=st.booleans())
    def fail_in_a_callback(self, name, n_before, is_interrupt):
        error = KeyboardInterrupt("callback") if is_interrupt else OSError("callback")
        left = iter(range(n_before))

        def fail(_):
            if next(left, None) is None:
                raise error

        rows, before = ROWS[name], copy.deepcopy(self.estimator)
        self.estimator.set_callbacks(Hook(fail))
        arguments = rows.arguments(self.estimator)
        _, caught = attempt(self.estimator.fit, **arguments, catch=type(error))
        if caught is None:
            before.fit(**arguments)
            self._take(rows, before)
        elif is_interrupt:
            self._expect_whole_iterations(rows, before)
        assert caught in (None, error)
        self.estimator.set_callbacks()

    @rule(how=st.sampled_from(["pickle", "copy", "file"]))
    def send_through(self, how):
        if how == "pickle":
            self.estimator = pickle.loads(pickle.dumps(self.estimator))
        elif how == "copy":
            self.estimator = copy.deepcopy(self.estimator)
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.era"
                if not self._is_fitted():
                    error = refused(save_model, self.estimator, path)
                    assert isinstance(error, NotFittedError)
                    assert not path.exists()
                    return
                save_model(self.estimator, path)
                self.estimator = load_model(path)[0]

    @rule()
    def clone(self):
        copied = clone(self.estimator)
        assert isinstance(refused(copied.predict, ROWS["one"].X), NotFittedError)
        assert repr(copied.get_params()) == repr(self.estimator.get_params())

    @rule(data=st.data())
    def set_parameters(self, data):
        refused(self.estimator.set_params, no_such_parameter=1)
        if self._trees():
            self.estimator.set_params(**{self._trees(): data.draw(st.integers(1, 4))})
            good = misuse.good_parameters(self.estimator)
            for name in data.draw(st.lists(st.sampled_from(sorted(good)), max_size=3)):
                value = data.draw(st.sampled_from(good[name]))
                self.estimator.set_params(**{name: value})

    @precondition(_is_fitted)
    @rule(name=some_rows, method=st.sampled_from(METHODS))
    def ask(self, name, method):
        rows = ROWS[name]
        if not hasattr(self.estimator, method):
            with pytest.raises(AttributeError, match=method):
                getattr(self.estimator, method)
        elif rows.X.shape[1] != self.rows.X.shape[1]:
            refused(answer, self.estimator, method, rows)
        else:
            found, error = attempt(answer, self.estimator, method, rows)
            if error is not None:
                assert str(error).strip()
                assert not rows.is_like(self.rows, self.estimator)
                return
            shape = np.shape(found[-1] if method == "staged_predict" else found)
            assert shape[:1] == (() if method == "score" else (rows.y.size,))


# The two averages are of one class but for their targets.
@pytest.mark.parametrize("kind", [
    slow(kind) if kind == "auto_regressor" else kind for kind in make_estimators()
])  # fmt: skip
def test_misuse(kind):
    run_a_few(type("Misuse", (Misuse,), {"kind": kind}), n_steps=12)


def test_an_interrupt_at_the_end_of_a_fit_leaves_no_part_of_it():
    rows = ROWS["named"]
    frame = rows.X.assign(week=rows.eras)
    fit = {"X": frame, "y": rows.y, "eras": "week"}
    forest = make_estimators()["forest_regressor"]
    whole = clone(forest)
    with Interrupt().watch() as count:
        whole.fit(**fit)
    for at in range(count.n_calls - 20, count.n_calls + 1):
        interrupted = clone(forest)
        with Interrupt(at).watch():
            _, error = attempt(interrupted.fit, **fit, catch=KeyboardInterrupt)
        if error is None:
            assert_same(answers(interrupted, rows), answers(whole, rows))
        else:
            error = refused(interrupted.predict, frame)
            assert isinstance(error, NotFittedError)
