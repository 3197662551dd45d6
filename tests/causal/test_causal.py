"""Invariant features of causal graphs, and other columns' information on the target."""

from decimal import Decimal
from functools import partial
from itertools import chain, combinations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import xlogy

from sklearn_era.causal import feature_penalties, invariant_features
from sklearn_era.causal import mutual_information_ratios as ratios_of

# Graphs worked out by hand: edges as "from>to", hidden common causes as
# "one~other"; then the manipulable variables, the measured features, and those that are
# invariant.
BY_HAND = {
    # Covariate shift: the cause varies, the target's mechanism does not.
    "chain, intervention on the parent": ("X>Y", "X", "X", "X"),
    "chain, intervention on a grandparent": ("Z>X X>Y", "Z", "Z X", "Z X"),
    "fork, intervention on one child": ("Y>X Y>Z", "Z", "X Z", "X"),
    # P(X | Y) of the manipulated child changes, and that of its sibling does not.
    "child of a manipulable parent's child": ("A>Y Y>X", "A", "A X", "A X"),
    # P(Y | C) alone would change: the theorem keeps the spouse, algorithm 2 does not.
    "collider, intervention on the spouse": ("Y>C S>C", "S", "S C", "S C"),
    # Unmeasured, the spouse is a part of the effect's mechanism.
    "collider, unmeasured spouse": ("Y>C S>C", "S", "C", ""),
    "collider, intervention on the effect": ("Y>C S>C", "C", "S C", "S"),
    # Given A, its hidden cause predicts Y in another way.
    "hidden cause of a manipulable feature and Y": ("A~Y", "A", "A", ""),
    "hidden cause of a feature and Y": ("X~Y Y>A", "A", "X A", "X"),
    # Without A, the mechanism of X stays, though they are one c-component.
    "hidden cause of two effects": ("Y>X Y>A X~A", "A", "X A", "X"),
    "hidden cause of an effect and a bystander": ("Y>X A~X", "A", "X A", "X"),
    "unmeasured cause of all": ("U>X U>A U>Y", "A", "X A", "X"),
    # The c-component has no descendant of Y.
    "hidden cause of two causes": ("X>Y A>Y X~A", "A", "X A", "X A"),
    # Example 1 of the paper, and the same with A measured: the text below the theorem.
    "mediator, unmeasured": ("Y>X Y>A A>Z", "A", "X Z", "X"),
    "mediator, measured": ("Y>X Y>A A>Z", "A", "X A Z", "X"),
    # Given W, X is independent of Y: P(Y | W, X) would stay, P(Y | X) changes.
    "mediator behind an effect": ("Y>W W>A A>X", "A", "W A X", "W"),
    "mediator before Y, measured": ("X>A A>Y", "A", "X A", "X A"),
    # Without its parent, the mechanism of Y includes what changes.
    "mediator before Y, unmeasured": ("X>A A>Y", "A", "X", ""),
    "intervention on Y": ("X>Y Y>Z", "Y", "X Z", ""),
    "descendants of a manipulable child": ("Y>A A>D D>E X>D", "A", "A D E X", "X"),
    # Nothing that is independent of Y can harm.
    "irrelevant nodes": ("X>Y Z>Q", "Z", "X Z Q", "X Z Q"),
    # Y, X and Z are one c-component, with nothing manipulable in it.
    "M, intervention above its middle": ("U>X U>Z V>Z V>Y A>Z", "A", "X Z A", "X Z A"),
    # X says nothing without Z.
    "M, intervention on its middle": ("U>X U>Z V>Z V>Y", "Z", "X Z", "X"),
    # U makes both manipulable, and one c-component.
    "unmeasured intervention by way of others": ("U>H H>X H>Z Y>X", "U", "X Z", "Z"),
    "hidden cause by way of an unmeasured node": ("H~Y H>X", "X", "X", ""),
    # The smallest graph in which theorem and text are wrong: A, in their view variant,
    # is a collider between its mechanism and Y, and X an effect of it.
    "effect of a confounded intervention": ("A~Y A>X", "A", "A X", ""),
    "the same beside others": ("Z>Y A~Y A>X Y>W W>V", "A", "Z A X W V", "Z W V"),
    # P(Y) changes by way of A, and A is no help.
    "confounded intervention on a cause": ("X>Y A>Y A~Y", "A", "X A", ""),
    "no intervention": ("X>Y Y>Z", "", "X Z", "X Z"),
}  # fmt: skip


def make_graph(links):
    """A graph that has Y, and the pairs with a hidden common cause."""
    graph = nx.DiGraph()
    graph.add_node("Y")
    hidden = []
    for link in links.split():
        if "~" in link:
            hidden.append(tuple(link.split("~")))
            graph.add_nodes_from(hidden[-1])
        else:
            graph.add_edge(*link.split(">"))
    return graph, hidden


@pytest.mark.parametrize("name", BY_HAND)
def test_graphs_worked_out_by_hand(name):
    links, manipulable, features, expected = BY_HAND[name]
    graph, hidden = make_graph(links)
    edges = list(graph.edges)
    find = partial(invariant_features, graph, "Y", manipulable.split())
    result = find(features=features.split(), hidden_causes=hidden)
    assert result == [node for node in graph if node in expected.split()]
    assert list(graph.edges) == edges
    if set(features.split()) == set(graph) - {"Y"}:  # which are those by default
        assert find(hidden_causes=hidden) == result


def random_model(seed):
    """A graph of up to six variables, what is hidden of it, and what may change."""
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(2, 7))
    order, graph = rng.permutation(n_nodes).tolist(), nx.DiGraph()
    graph.add_nodes_from(range(n_nodes))
    hidden = []
    for i, cause in enumerate(order):
        for effect in order[i + 1 :]:
            if rng.random() < 0.4:
                graph.add_edge(cause, effect)
            if rng.random() < 0.15:
                hidden.append((cause, effect))
    features = [node for node in range(1, n_nodes) if rng.random() < 0.8]
    manipulable = [node for node in range(1, n_nodes) if rng.random() < 0.3]
    return graph, hidden, features, manipulable, rng


def covariances(graph, hidden, manipulable, rng):
    """Those of a linear Gaussian model, before and after manipulable nodes change."""
    n = graph.number_of_nodes()
    size = n + len(hidden)
    weights, variances = np.zeros((size, size)), rng.uniform(0.5, 2, size)
    for cause, effect in graph.edges:
        weights[effect, cause] = rng.normal()
    for cause, effects in enumerate(hidden, start=n):
        weights[list(effects), cause] = rng.normal(size=2)
    changed, changed_variances = weights.copy(), variances.copy()
    for node in manipulable:
        changed[node] *= rng.normal(size=size)
        changed_variances[node] *= rng.uniform(2, 4)
    found = []
    for b, v in ((weights, variances), (changed, changed_variances)):
        mixing = np.linalg.inv(np.eye(size) - b)
        found.append((mixing * v @ mixing.T)[:n, :n])
    return found


def regression(covariance, names):
    """Coefficients of node 0 on others, and the variance that they leave."""
    to_target = covariance[np.ix_(names, [0])]
    coefficients = np.linalg.solve(covariance[np.ix_(names, names)], to_target)
    left = covariance[0, 0] - (coefficients * to_target).sum()
    return np.append(coefficients, left)


def test_regression_on_invariant_features_does_not_change():
    n_checked = n_with_variant = 0
    for seed in range(600):
        graph, hidden, features, manipulable, rng = random_model(seed)
        of = {"features": features, "hidden_causes": hidden}
        names = invariant_features(graph, 0, manipulable, **of)
        before, after = covariances(graph, hidden, manipulable, rng)
        if names:
            known, new = (regression(x, names) for x in (before, after))
            assert_allclose(known, new, atol=1e-8)
            n_checked += 1
            n_with_variant += len(names) < len(features)
    assert n_checked > 300
    assert n_with_variant > 50


def test_no_set_is_invariant_if_none_is_found():
    n_empty = 0
    for seed in range(400):
        graph, hidden, features, manipulable, _ = random_model(seed)
        of = {"features": features, "hidden_causes": hidden}
        names = invariant_features(graph, 0, manipulable, **of)
        for i, pair in enumerate(hidden):
            graph.add_edges_from((f"hidden {i}", effect) for effect in pair)
        graph.add_node("era")
        graph.add_edges_from(("era", name) for name in manipulable)
        sizes = range(1, 1 + (0 if names else len(features)))
        sets = chain(*(combinations(features, size) for size in sizes), [names])
        are_safe = [nx.is_d_separator(graph, {"era"}, {0}, {*x}) for x in sets]
        assert are_safe[-1] or not names
        assert not any(are_safe[:-1])
        n_empty += not names
    assert n_empty > 30


GRAPH = nx.DiGraph([("age", "target"), ("target", "visits")])


@pytest.mark.parametrize(("graph", "params", "match"), [
    (nx.Graph([("target", "x")]), {}, r"must be a networkx\.DiGraph; got Graph"),
    ([("target", "x")], {}, r"must be a networkx\.DiGraph; got list"),
    (nx.DiGraph([("a", "target"), ("target", "b"), ("b", "a")]), {},
     r"has the cycle (a -> target -> b -> a|target -> b -> a -> target|b -> .*b);"),
    (GRAPH, {"target": "Target"},
     r"target: graph has no node 'Target'\. Did you mean 'target'\?"),
    (GRAPH, {"manipulable": ["visit"]},
     r"manipulable: graph has no node 'visit'\. Did you mean 'visits'\?"),
    (GRAPH, {"manipulable": "age"}, "manipulable must be a list of names; got 'a"),
    (GRAPH, {"features": iter(["age"])}, "features must be a list of names; got <"),
    (GRAPH, {"features": ["xyz"]}, r"features: graph has no node 'xyz'\.$"),
    (GRAPH, {"features": ["age", "target"]}, "features has the target 'target'"),
    (GRAPH, {"hidden_causes": [("age", "visist")]},
     r"hidden_causes: graph has no node 'visist'\. Did you mean 'visits'\?"),
    (GRAPH, {"hidden_causes": [("age", "age")]}, r"two variables; got \('age', 'a"),
    (GRAPH, {"hidden_causes": [("age",)]}, r"two variables; got \('age',\) in it"),
    (GRAPH, {"hidden_causes": ("age", "visits")}, "two variables; got 'age' in it"),
    (GRAPH, {"hidden_causes": 5}, "hidden_causes must be pairs; got 5"),
])  # fmt: skip
def test_graphs_and_names_are_checked(graph, params, match):
    with pytest.raises(ValueError, match=match):
        invariant_features(graph, **{"target": "target", "manipulable": []} | params)


def information(x, y):
    """In nats, of the values themselves, less the bias of as many bins."""
    joint = pd.crosstab(x, y).to_numpy() / len(x)
    p_x, p_y = joint.sum(axis=1, keepdims=True), joint.sum(axis=0)
    bias = (p_x.size - 1) * (p_y.size - 1) / (2 * len(x))
    return xlogy(joint, joint / (p_x * p_y)).sum() - bias


def make_columns(n_samples=5000):
    """A weak, a strong and an idle column of small integers, and classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n_samples)
    columns = [
        np.where(rng.random(n_samples) < share, y, rng.integers(0, 5, n_samples))
        for share in (0.3, 0.8, 0.0)
    ]
    return np.column_stack(columns), y


def test_ratios_are_those_of_the_formula():
    X, y = make_columns()
    expected = np.array([max(0, information(column, y)) for column in X.T])
    for invariant in ([0], [1], [0, 1], np.array([True, False, False])):
        mean = expected[np.arange(3)[invariant]].mean()
        ratios = ratios_of(X, y, invariant)
        assert_allclose(ratios, expected / mean, atol=1e-12)
    for j in (0, 1):
        shares = np.where(np.arange(3) == j, 0, expected / expected[j])
        assert_allclose(feature_penalties(X, y, [j]), shares)
    assert expected[1] > expected[0] > 0
    # Columns keep their order, and targets may have names.
    ratios = ratios_of(X, y, [0])
    assert_array_equal(ratios_of(X[:, ::-1], y, [2]), ratios[::-1])
    names = np.array(["no", "perhaps", "yes"])
    assert_array_equal(ratios_of(X, names[y], [0]), ratios)
    frame = pd.DataFrame(X, columns=["weak", "strong", "idle"])
    assert_array_equal(ratios_of(frame, y, ["weak"]), ratios)
    graph = nx.DiGraph([("y", "weak"), ("y", "strong")])
    invariant = invariant_features(graph, "y", ["strong"])
    assert_array_equal(feature_penalties(frame, y, invariant), [0, *ratios[1:]])


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_noise_says_nothing(kind):
    rng = np.random.default_rng(1)
    signal = rng.normal(size=4000)
    y = signal + rng.normal(size=4000)
    y = y > 0 if kind == "classes" else y
    noise = rng.normal(size=(4000, 50))
    ratios = ratios_of(np.column_stack([signal, noise]), y, [0])
    assert ratios[0] == 1
    assert ratios[1:].max() < 0.1
    assert ratios[1:].mean() < 0.02


def test_numbers_are_binned_by_quantiles():
    rng = np.random.default_rng(2)
    x = rng.normal(size=6400)
    y = x + rng.normal(size=6400)
    bins = np.argsort(np.argsort([x, y])) // 1600
    X = np.column_stack([x, np.exp(3 * x), bins[0]])
    ratios = ratios_of(X, y, [2], max_bins=4)
    assert_allclose(ratios, 1, rtol=1e-12)  # whatever the scale
    as_classes = ratios_of(X, bins[1], [2], max_bins=4)
    assert_allclose(as_classes, 1, rtol=1e-12)
    finer = ratios_of(np.column_stack([x, x > 0]), y, [1])
    assert finer[0] > 1.2
    for max_bins in (1, 256, 4.0):
        with pytest.raises(ValueError, match=r"max_bins=.* from 2 to 255"):
            feature_penalties(X, y, [0], max_bins=max_bins)


@pytest.mark.parametrize("kind", [np.int64, np.float64, object, Decimal])
def test_whole_numbers_of_many_values_are_binned(kind):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 2))
    price = np.round(200_000 * np.exp(x.sum(axis=1) + rng.normal(size=3000)))
    make = np.vectorize(Decimal, otypes=[object])
    y = make(price) if kind is Decimal else price.astype(kind)
    ratios = ratios_of(x, y, [0])
    assert_array_equal(ratios, ratios_of(x, price + 0.5, [0]))
    assert 0.8 < ratios[1] < 1.25
    many = pd.DataFrame({"x": x[:, 0], "id": np.arange(3000).astype(str)})
    assert ratios_of(many, price, ["x"])[1] == 0


def test_a_rare_value_has_a_bin_beside_a_frequent_one():
    rng = np.random.default_rng(6)
    rare = (rng.random(4000) < 0.05) * rng.integers(1, 20, 4000)
    y = rng.normal(size=4000) + 3 * (rare > 0)
    X = np.column_stack([rare, -rare, rare > 0])
    assert_allclose(ratios_of(X, y, [2], max_bins=8), 1, atol=0.05)
    X = np.column_stack([y, rare > 0])
    for target in (rare, -rare):
        assert ratios_of(X, target, [1], max_bins=8)[0] > 0.2


def test_infinities_are_the_ends_of_a_column():
    rng = np.random.default_rng(4)
    y = rng.random(500) < 0.5
    sides = [np.where(y, 1, -1) * x for x in (1.0, np.inf)]
    half = np.where(rng.random(500) < 0.5, sides, 0.0)
    assert_array_equal(ratios_of(np.column_stack(sides), y, [0]), [1, 1])
    assert_array_equal(ratios_of(np.column_stack([*half]), y, [0]), [1, 1])


def test_missing_values_and_categories_are_bins():
    rng = np.random.default_rng(3)
    X, y = make_columns()
    is_missing = rng.random(y.size) < np.where(y == 0, 0.5, 0.1)
    numbers = np.where(is_missing, np.nan, X[:, 1])
    letters = np.array(list("abcde"))[X[:, 1]].astype(object)
    letters[is_missing] = None
    frame = pd.DataFrame({
        "numbers": numbers, "filled": np.where(is_missing, 7, X[:, 1]), "text": letters,
        "category": pd.Categorical(letters, categories=list("ecabdz")),
        # Unordered codes: as numbers in two bins they predict less.
        "many": pd.Categorical.from_codes(X[:, 1], [f"{i}" for i in range(5)]),
    })  # fmt: skip
    ratios = ratios_of(frame, y, ["filled"])
    assert_allclose(ratios[:4], 1, rtol=1e-12)
    # As text, as three numbers would have two bins.
    coarse = ratios_of(frame, y.astype(str), ["category"], max_bins=2)
    assert_allclose(coarse[2:4], 1, rtol=1e-12)
    filled = frame["filled"].to_numpy()
    assert_allclose(coarse[4], information(X[:, 1], y) / information(filled, y))
    assert coarse[0] < 0.9
    words = ratios_of(frame[["text", "many"]], y, ["text"])
    assert_allclose(words, coarse[[2, 4]], rtol=1e-12)
    # A column without a value has no information.
    with pytest.warns(UserWarning, match=r"X: column\(s\) 'numbers' have no value in"):
        without = ratios_of(frame.assign(numbers=np.nan), y, ["filled"])
    assert_array_equal(without, [0, *ratios[1:]])


X, Y = make_columns(200)
FRAME = pd.DataFrame(X, columns=["weak", "strong", "idle"])


@pytest.mark.parametrize(("X", "y", "invariant", "match"), [
    (X, Y, [], "invariant has no column in it; name at least one"),
    (X, Y, [False] * 3, "invariant has no column in it"),
    (X, Y, "weak", "invariant must be a list of names, .*; got 'weak'"),
    (X, Y, None, "invariant must be a list of names, .*; got None"),
    (X, Y, ["weak"], "invariant names column 'weak', but X is no data frame"),
    (X, Y, [3], "invariant: there is no column 3 among the 3 of X"),
    (X, Y, [0.5], r"invariant must hold names, indices or bools; got 0\.5 in it"),
    (FRAME, Y, ["week"], "invariant: X has no column 'week'; its columns are 'w"),
    (FRAME.assign(idle=1), Y, ["idle"],
     r"invariant: column\(s\) 'idle' carry no information on the target"),
    (X, Y[1:], [0], "y has 199 labels, but X has 200 rows"),
    (X, np.where(Y == 0, np.nan, Y), [0], "y has .* missing label"),
    (X[:, 0], Y, [0], "X must have two dimensions"),
])  # fmt: skip
def test_columns_and_targets_are_checked(X, y, invariant, match):
    for function in (ratios_of, feature_penalties):
        with pytest.raises(ValueError, match=match):
            function(X, y, invariant)
