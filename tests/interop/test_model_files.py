"""Model files: they predict what was saved, and what they refuse."""

import os
import pickle
import shutil
import zipfile
from collections import OrderedDict
from datetime import date
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn.ensemble
from sklearn.base import clone
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import PowerTransformer

import sklearn_era
import sklearn_era.model_files as module
from helpers.criteria import CRITERIA
from helpers.data import make_data
from helpers.estimators import make_estimator
from helpers.grids import slow
from helpers.model_files import METADATA, MODEL, Forgery
from helpers.trees import assert_same_model, trees_of
from interop.model_files_of_before.write import predictor
from sklearn_era import auto, calibration, ensemble, preprocessing
from sklearn_era.auto._linear import LinearClassifier, LinearRegressor
from sklearn_era.criteria import Blend, Directional, Gain, VREx
from sklearn_era.effects import GroupDRO, Intercepts, Recency
from sklearn_era.ensemble import HistGradientBoostingRegressor, JustTrainTwice
from sklearn_era.ensemble._parameter_table import PARAMETERS
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.model_files._estimators import CLASSES
from sklearn_era.model_files._values import ValueReader
from sklearn_era.model_selection import EraSearchCV, EraSplit, EraWalkForwardSplit
from sklearn_era.rules import RuleEnsembleClassifier

SKLEARN = "scikit-learn"
OF_BEFORE = sorted((Path(__file__).parent / "model_files_of_before").glob("[0-9]*"))
SMALL = {"max_iter": 3, "max_leaf_nodes": 8, "random_state": 0}
BOOSTER = HistGradientBoostingRegressor(**SMALL)


def fit(target="real", **parameters):
    """A fitted estimator, X, y and eras; column 0 holds categories."""
    X, y, _, eras = make_data(target)
    parameters = {"categorical_features": [0]} | parameters
    model = make_estimator(ensemble, target, **parameters)
    return model.fit(X, y, eras=eras), X, y, eras


@pytest.fixture
def regressor():
    return fit(split_criterion="era")[0]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The file of a regressor, which no test changes."""
    path = tmp_path_factory.mktemp("file") / "model.era"
    save_model(fit(split_criterion="era")[0], path, target="y", era="week")
    return path


@pytest.fixture
def saved(file, tmp_path):
    """A file of one's own."""
    return Path(shutil.copy(file, tmp_path))


def forge(path, change, members=()):
    """Write what `change` makes of a model file beside it, and return its path."""
    forgery = Forgery(path)
    change(forgery)
    forged = path.with_name("forged.era")
    forgery.write(forged, members)
    return forged


def assert_refused(path, message, change, members=(), read=load_model):
    with pytest.raises(ModelFileError, match=message):
        read(forge(path, change, members))


def array(change, *path):
    """Change an array of a forgery."""

    def change_array(forgery):
        number = forgery.array_of(*path)
        forgery.arrays[number] = change(forgery.arrays[number])

    return change_array


def metadata_with(**changes):
    return lambda forgery: forgery.documents[METADATA].update(changes)


def round_trip(model, folder, **names):
    """A model as read from its file, and the metadata."""
    save_model(model, folder / "model.era", **names)
    loaded, metadata = load_model(folder / "model.era")
    assert type(loaded) is type(model)
    return loaded, metadata


def frame_of(X):
    """X as a data frame, its categories as text."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(X, columns=list("abcde"))
    X["a"] = pandas.Categorical(X["a"].map("c{:.0f}".format))
    return X


@pytest.mark.parametrize("parameters", [
    *(p if i % 4 == 0 else slow(p) for i, p in enumerate(CRITERIA.values())),
    {"split_criterion": {"vrex": np.float32(0.5), "gain": np.int64(0)}},
    {"split_criterion": OrderedDict(vrex=2)},
    {"split_criterion": Blend({VREx(np.float32(0.5)): 1, "era": 2}, False)},
    {"era_weighting": Recency(half_life=3), "era_effects": Intercepts("mean")},
    {"era_weighting": GroupDRO(np.float64(0.2)), "split_criterion": Gain("era")},
    {"early_stopping": True, "validation_eras": None},
    {"categorical_features": None}, {"early_stopping": True, "scoring": None},
    {"early_stopping": True, "scoring": "r2"},
    {"loss": "quantile", "quantile": 0.3}, {"loss": "absolute_error"},
    {"loss": "poisson"}, {"loss": "gamma"},
    {"random_state": np.random.RandomState(3), "max_features": 0.5},
    {"monotonic_cst": [0, 1, 0, 0, 0], "interaction_cst": "pairwise"},
], ids=", ".join)  # fmt: skip
def test_regressor_round_trip(parameters, tmp_path):
    ScoringMonitor = pytest.importorskip("sklearn.callback").ScoringMonitor
    is_positive = parameters.get("loss") in ("poisson", "gamma")
    model, X, y, eras = fit("positive" if is_positive else "real", **parameters)
    callbacks = [ScoringMonitor(scoring="r2")]
    loaded, metadata = round_trip(model.set_callbacks(*callbacks), tmp_path)
    given = model.split_criterion
    criterion = dict(given) if isinstance(given, dict) else given
    assert metadata.split_criterion in (criterion, repr(criterion))
    has_categories = model.categorical_features is not None
    assert metadata.categorical_features == [0] * has_categories
    assert metadata.feature_names is None
    for name in PARAMETERS:
        assert getattr(loaded, name) == getattr(model, name)
    assert_same_model(loaded, model, X)
    for tree, other in zip(trees_of(loaded), trees_of(model), strict=True):
        assert vars(tree).keys() == vars(other).keys()
        for name, array in vars(tree).items():
            assert array.dtype == getattr(other, name).dtype
            assert np.array_equal(array, getattr(other, name))
    # Only parts of the fit are left out: the loaded one can be fitted as before.
    assert model._skl_callbacks == callbacks
    of_the_fit = {"_scorer", "_raw_predict", "_skl_callbacks"}
    assert {"_skl_callbacks"} <= set(vars(model)) - set(vars(loaded)) <= of_the_fit
    loaded.fit(X, y, eras=eras)


def test_frame_round_trip_and_metadata(tmp_path):
    X, y, _, eras = make_data()
    X = frame_of(X)
    model = make_estimator(ensemble, "real", split_criterion="directional")
    model.fit(X, y, eras=eras)
    path = tmp_path / "model.era"
    written = save_model(model, path, target="gain", era="week")
    loaded, metadata = load_model(path)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert metadata == written == module.read_metadata(path)
    assert metadata.estimator == "HistGradientBoostingRegressor"
    assert metadata.feature_names == ["a", "b", "c", "d", "e"]
    assert metadata.categorical_features == ["a"]
    assert (metadata.target, metadata.era) == ("gain", "week")
    assert metadata.split_criterion == "directional"
    versions = {"sklearn_era": sklearn_era.__version__, SKLEARN: sklearn.__version__}
    assert metadata.versions == versions | {"numpy": np.__version__}


def test_a_sklearn_that_is_not_supported_is_refused_unread(file, monkeypatch):
    monkeypatch.setattr(ValueReader, "decode", lambda *args: pytest.fail("read"))
    versions = module.read_metadata(file).versions | {SKLEARN: "1.6.1"}
    forged = forge(file, metadata_with(versions=versions))
    with pytest.raises(ModelFileError) as raised:
        load_model(forged)
    assert str(raised.value) == (
        f"{forged} was written with scikit-learn 1.6.1, and this version of "
        "sklearn_era works with 1.7.0, 1.7.1, 1.7.2, 1.8.0, 1.9.0, 1.9.1: fit the "
        "model again, or install a version that works with both."
    )
    assert module.read_metadata(forged).versions[SKLEARN] == "1.6.1"


def test_another_version_is_read_by_its_format(file, monkeypatch):
    """Versions of sklearn_era, and patches of scikit-learn; later ones may add keys."""
    patch = sklearn.__version__.rpartition(".")[0] + ".99"
    changes = {"sklearn_era": "0.0.7", SKLEARN: patch}
    versions = module.read_metadata(file).versions | changes
    monkeypatch.setattr(sklearn_era, "__version__", "0.2.0")
    forged = forge(file, metadata_with(novelty=1, versions=versions))
    loaded, metadata = load_model(forged)
    assert {name: metadata.versions[name] for name in changes} == changes
    assert_same_model(loaded, load_model(file)[0], fit()[1])


@pytest.mark.parametrize("criterion", [
    Directional(), Directional(min_agreement=np.float64(0.6)),
    {"gain": np.float64(0.5), "era": 0.5}, Blend({"gain": 1.0, "era": 1.0}),
])  # fmt: skip
def test_settings_of_texts_damage_no_file(criterion, tmp_path):
    X, y, _, eras = make_data()
    model = HistGradientBoostingRegressor(split_criterion=criterion, max_iter=2)
    with sklearn.config_context(print_changed_only=False):
        save_model(model.fit(X, y, eras=eras), tmp_path / "m.era")
    loaded, metadata = load_model(tmp_path / "m.era")
    with np.printoptions(legacy="1.25"):
        assert load_model(tmp_path / "m.era")[1] == metadata
    assert np.array_equal(loaded.predict(X), model.predict(X))
    forged = forge(tmp_path / "m.era", metadata_with(split_criterion="VREx()"))
    with pytest.raises(ModelFileError, match=OTHER_MODEL):
        load_model(forged)


def test_a_parameter_that_the_file_does_not_know_has_its_default(regressor, tmp_path):
    del regressor.__dict__["min_gain_share"]
    loaded, _ = round_trip(regressor, tmp_path)
    assert loaded.min_gain_share == HistGradientBoostingRegressor().min_gain_share
    assert np.array_equal(loaded.predict(fit()[1]), regressor.predict(fit()[1]))


GONE = "to be fitted again: '{}' is no longer a criterion; use 'era' or a Custom".format


@pytest.mark.parametrize(("criterion", "message"), [
    ("held_out", GONE("held_out")),
    ({"dict": [["held_out", 1], ["gain", 1]]}, GONE("held_out")),
    ({"estimator": ["HeldOut", {"dict": []}, {"dict": []}]}, GONE("HeldOut")),
    ("huber", "split_criterion='huber' is no criterion"),
    ({"estimator": ["Huber", {"dict": []}, {"dict": []}]}, "unknown class 'Huber'"),
])  # fmt: skip
def test_a_criterion_that_was_removed_or_is_unknown_is_named(file, criterion, message):
    def change(forgery):
        for pair in forgery.parts[0]:
            if pair[0] == "split_criterion":
                pair[1] = criterion

    assert_refused(file, message, change)


def test_files_archives_and_metadata_of_something_else_are_refused(saved):
    path = forge(saved, lambda forgery: forgery.documents[METADATA].pop("target"))
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("schema.json", "{}")
    archives = [saved.read_bytes(), path.read_bytes()]
    for content in (*archives, b"", b"a,b\n1,2\n", b"PK\x03\x04 not a zip"):
        saved.write_bytes(content)
        for read in (load_model, module.read_metadata):
            with pytest.raises(ModelFileError, match="is not a model file of sklearn"):
                read(saved)


def test_missing_file_and_folder(regressor, tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.era")
    with pytest.raises(FileNotFoundError):
        save_model(regressor, tmp_path / "none" / "model.era")


@pytest.mark.parametrize("member", [METADATA, slow(MODEL), slow("arrays/99.npy")])
def test_a_file_that_inflates_beyond_its_size_is_refused_unread(saved, member):
    forgery = Forgery(saved)
    forgery.documents.pop(member, None)
    forgery.write(saved, {member: bytes(2**27)})
    assert os.path.getsize(saved) < 2**18
    with pytest.raises(ModelFileError, match=r"would inflate to 134,.* bytes"):
        module.read_metadata(saved)


@pytest.mark.parametrize("name", ["evil\x1b]0;owned\x07", "\u202egnp.exe"])
def test_names_of_a_file_reach_the_terminal_escaped(file, name):
    for change in (
        lambda forgery: forgery.set(name, 3),
        lambda forgery: forgery.set("n_features_in_", {name: 3}),
        metadata_with(versions={SKLEARN: name}),
        metadata_with(format=name, versions={"sklearn_era": name}),
    ):
        with pytest.raises(ModelFileError) as raised:
            load_model(forge(file, change))
        assert str(raised.value).isprintable()


MAPPER = _BinMapper()
MAPPER.transform = len
FUNCTION = "name its `scoring` by a string"


@pytest.mark.parametrize(("change", "message"), [
    ({"note": Fraction(1, 3)}, "the attribute 'note'"),
    ({"_preprocessor": PowerTransformer()}, "the preprocessor PowerTransformer"),
    ({"_predictors": [[], [None]]}, "iterations of different numbers of trees"),
    ({"_bin_mapper": MAPPER}, "the attribute 'transform' of a bin mapper"),
    ({"scoring": Ridge()}, "Ridge"),
    ({"scoring": make_scorer(mean_absolute_error)}, FUNCTION),
    ({"scoring": lambda estimator, X, y: 0.0}, FUNCTION),
    ({"_era_labels": np.array([Fraction(1, 3)])},
     r"fractions.Fraction, .* pass eras as text"),
], ids=range(8))  # fmt: skip
def test_what_a_file_does_not_hold_leaves_the_file_before(saved, change, message):
    before = saved.read_bytes()
    model, _ = load_model(saved)
    vars(model).update(change)
    with pytest.raises(ModelFileError, match=message):
        save_model(model, saved)
    assert (saved.read_bytes(), [*saved.parent.iterdir()]) == (before, [saved])


@pytest.mark.parametrize(("field", "value"), [
    ("left", 10**6), ("right", 10**6), ("left", 0), ("feature_idx", 5),
    ("feature_idx", -1), ("bitset_idx", 10**6), ("depth", 7), ("is_leaf", 2),
    ("right", "left"), ("n_nodes", 10**6), ("n_nodes", "wrap"), ("depth", 8),
])  # fmt: skip
def test_forged_trees_are_refused(file, field, value):
    def change(forgery):
        nodes = forgery.arrays[forgery.array_of("_predictors", "nodes")]
        n_nodes = forgery.array_of("_predictors", "n_nodes")
        splits = nodes["is_leaf"] == 0
        if field == "bitset_idx":
            splits &= nodes["is_categorical"] == 1
        at = np.flatnonzero(splits)[-1 if value == 8 else 0]
        if value == "wrap":  # counts whose sum is right in 64 bits
            counts = np.array([[2**62]] * 4 + [[nodes.size]])
            forgery.arrays[n_nodes] = counts
            forgery.arrays[forgery.array_of("_predictors", "n_bitsets")] = counts * 0
        elif field == "n_nodes":
            forgery.arrays[n_nodes][0, 0] = value
        else:  # "left": a child of two parents
            nodes[field][at] = nodes[value][at] if value == "left" else value

    message = {
        "n_nodes": "trees do not fit each other",
        "is_leaf": "flag is_leaf",
        "depth": "several parents, none, or another depth",
    }.get(field, "several parents" if value == "left" else "points outside its arrays")
    assert_refused(file, message, change)


def test_trees_of_more_outputs_than_the_model_are_refused(file):
    """A regressor with the trees of a classifier would write beyond its predictions."""

    def change(forgery):
        for name in ("n_nodes", "n_bitsets"):
            array(lambda a: a.reshape(1, -1), "_predictors", name)(forgery)

    def change_all(forgery):
        change(forgery)
        number = forgery.array_of("_predictors", "n_nodes")
        forgery.set("n_trees_per_iteration_", forgery.arrays[number].size)

    assert_refused(file, "trees do not fit each other", change)
    assert_refused(file, "its classes do not fit", change_all)


def estimator_of(name):
    return {"estimator": [name, {"dict": []}, {"dict": []}]}


NO_MODEL_FILE = "is not a model file of sklearn_era"
OTHER_MODEL = "is damaged: its metadata describe another model"
DAMAGED = [
    (metadata_with(format=99, novelty=1, versions={"sklearn_era": "9.0"}),
     r"of another sklearn_era \(9\.0\); this"),
    (metadata_with(versions="1.0"), NO_MODEL_FILE),
    (metadata_with(target=3), NO_MODEL_FILE),
    *((metadata_with(**change), OTHER_MODEL) for change in [
        {"feature_names": ["a"]}, {"feature_names": 3}, {"categorical_features": None},
        {"estimator": "EraForestRegressor"}, {"split_criterion": "vrex"},
    ]),
    *((lambda x, model=model: x.documents.update({MODEL: model}), "era is damaged")
      for model in ({}, [1], 3, {"dict": []}, {"array": 0}, estimator_of("Ridge"),
                    estimator_of("HistGradientBoostingRegressor"))),
    *((array(change, "_bin_mapper", name), "its bins do not fit") for name, change in [
        ("thresholds", lambda a: a[:-1]), ("thresholds", lambda a: a + 300),
        ("thresholds", lambda a: a * np.nan), ("thresholds", lambda a: a.astype("f4")),
        ("n_thresholds", lambda a: a[:-1]), ("n_thresholds", lambda a: -a),
    ]),
    (array(lambda a: a[:-1], "is_categorical_"), "its categories do not fit"),
    (array(lambda a: ~a, "is_categorical_"), "its categories do not fit"),
    (array(lambda a: a[:, :0], "_baseline_prediction"), "its predictions do not fit"),
    (array(lambda a: a.view("V1"), "_predictors", "nodes"), "has the dtype"),
    (array(lambda a: a[:, :7], "_predictors", "raw_left_cat_bitsets"), "not fit"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), DAMAGED, ids=range(len(DAMAGED)))
def test_metadata_and_parts_that_do_not_fit_are_refused(file, change, message):
    assert_refused(file, message, change)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("member", [METADATA, MODEL])
def test_nested_json_and_two_members_of_one_name_are_refused(file, member):
    nested, message = {member: "[" * 100_000}, rf"{NO_MODEL_FILE}|is damaged"
    assert_refused(file, message, lambda x: x.documents.pop(member), nested)
    assert_refused(file, NO_MODEL_FILE, lambda forgery: None, {member: "{}"})


LOSS = {"loss": ["PinballLoss", {"quantile": 0.5}, False]}


def in_rule(place, value):
    def change(forgery):
        forgery.attribute("_rules")[0]["tuple"][place] = value

    return RuleEnsembleClassifier(n_estimators=2), change, "its rules do not fit"


def point_beyond(forgery):
    state = dict(map(tuple, forgery.parts[0]))["random_state"]["random"]
    dict(map(tuple, state["dict"]))["state"]["dict"][1][1] = 10**6


@pytest.mark.parametrize(("model", "change", "message"), [
    (ensemble.HistGradientBoostingClassifier(max_iter=3),
     lambda forgery: forgery.set("_loss", LOSS), "its loss and classes do not"),
    (ensemble.HistGradientBoostingClassifier(random_state=np.random.RandomState(0)),
     point_beyond, "a random state points outside its numbers"),
    in_rule(3, 0.5), in_rule(3, True), in_rule(2, 7),
], ids=range(5))  # fmt: skip
def test_forged_classifiers_are_refused(model, change, message, tmp_path):
    X, y, _, eras = make_data("binary")
    save_model(clone(model).fit(X, y, eras=eras), tmp_path / "model.era")
    assert_refused(tmp_path / "model.era", message, change)


@pytest.fixture(scope="module")
def average(tmp_path_factory):
    """The file of an average of a booster and a linear model."""
    X, _, _, eras = make_data()
    members = [("linear", LinearRegressor("squared_error", [0]))]
    model = auto.AutoEraRegressor(BOOSTER, members=members)
    path = tmp_path_factory.mktemp("average") / "model.era"
    y = np.nan_to_num(X[:, 1:]).sum(axis=1)
    model.fit(X, y, eras=eras)
    assert model.members_.keys() == {"linear"}
    model.members_["plain"] = clone(BOOSTER).fit(X, y)
    model.weights_ = {"plain": 0.5, "linear": 0.5}
    save_model(model, path)
    return path


NAN = {"float": "nan"}


def linear(name, change):
    """Change an attribute of the linear member, or its array."""

    def change_part(forgery):
        pairs = forgery.attribute("members_", "linear")["estimator"][2]["dict"]
        (pair,) = (pair for pair in pairs if pair[0] == name)
        if name == "_codings":
            pair[1] = change(pair[1])
        else:
            number = pair[1]["array"]
            forgery.arrays[number] = change(forgery.arrays[number])

    return change_part


def weigh(plain=0.5, linear=None, *others):
    """Weights of the plain and the linear member, and of others."""
    pairs = [["plain", plain], ["linear", linear]][: 1 if linear is None else 2]
    weights = {"dict": [*pairs, *others]}
    return lambda forgery: forgery.set("weights_", weights)


def code_last(kind, content):
    return linear("_codings", lambda x: [*x[:-1], {kind: content}])


FORGED = {
    "members and weights": [weigh(1.0), lambda x: x.set("weights_", {"dict": []})],
    "weights": [
        weigh(NAN, 0.5), weigh(-0.5, 1.5), weigh(0.3, 0.3), weigh(True, 0.0),
        weigh(0.5, "0.5"), weigh(0.5, 0.25, ["other", 0.25]),
    ],
    "names of members": [weigh(0.5, 0.5, [1, 0.0])],
    "codings": [
        linear("_codings", lambda x: x[:-1]),
        linear("_codings", lambda x: [x[0][:1] * 2, *x[1:]]),
        *(code_last("tuple", x) for x in ([0.0, 0.0, False], [NAN, 1.0, False],
                                          [0.0, 1.0, 0], [0.0, False])),
        code_last("set", []),
    ],
    "coefficients": [
        linear("_codings", lambda x: [x[0][:-1], *x[1:]]),
        *(linear("_coefficients", change) for change in (
            lambda x: x[..., :-1], lambda x: x[:-1], lambda x: x.astype("c16"),
            lambda x: x.astype("U9"))),
        linear("_intercepts", lambda x: x[:, 0]),
        linear("_range", lambda x: x.astype("f4")),
    ],
    "range": [linear("_range", lambda x: x[:1])],
    "rows left out": [
        array(change, "_left_out", name) for name, change in [
            ("y", lambda x: x[:-1]), ("y", lambda x: x[:, None]),
            ("weights", lambda x: x.astype("U9")), ("codes", lambda x: x * 2**40),
            ("codes", lambda x: x - 1), ("codes", lambda x: x + 0.5),
        ]
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", FORGED)
def test_forged_averages_are_refused(average, message):
    for change in FORGED[message]:
        assert_refused(average, f"its {message} do not fit", change)


def test_a_linear_member_alone_and_an_updated_average(tmp_path):
    X, _, _, eras = make_data()
    y = np.nan_to_num(X[:, 1:]).sum(axis=1)
    X = frame_of(X)
    members, old = [("linear", LinearRegressor("squared_error"))], eras < eras.max()
    model = auto.AutoEraRegressor(BOOSTER, members=members)
    model.fit(X[old], y[old], eras=eras[old])
    assert model.members_.keys() == {"linear"}
    loaded, metadata = round_trip(model, tmp_path)
    names = metadata.feature_names, metadata.categorical_features
    assert names == ([*"abcde"], ["a"])
    for each in (model, loaded):
        each.update(X[~old], y[~old], eras=eras[~old])
    again, _ = round_trip(loaded, tmp_path)
    assert again.weights_ == model.weights_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X.rename(columns={"b": "z"}))


@pytest.mark.parametrize("cv", [
    EraWalkForwardSplit(2, gap=1), EraSplit(2, gap=1), GroupKFold(2),
])  # fmt: skip
def test_a_splitter_is_saved_if_it_is_of_eras(cv, tmp_path):
    X, y, _, eras = make_data()
    model = EraSearchCV(BOOSTER, {"max_leaf_nodes": [4]}, cv=cv).fit(X, y, eras=eras)
    if isinstance(cv, GroupKFold):
        with pytest.raises(ModelFileError, match=r"GroupKFold.* its `cv` to a number"):
            save_model(model, tmp_path / "m.era")
        return
    loaded, _ = round_trip(model, tmp_path)
    assert type(loaded.cv) is type(cv)
    assert vars(loaded.cv) == vars(cv)
    assert np.array_equal(loaded.predict(X), model.predict(X))

    def change(forgery):
        splitter = dict(map(tuple, forgery.parts[0]))["cv"]["estimator"][1]["dict"]
        splitter[0][1] = -3

    assert_refused(tmp_path / "model.era", "n_splits", change)


@pytest.mark.parametrize(("header", "data"), [
    ("'<i8', 'fortran_order': False, 'shape': (1152921504606846976,)}", b""),
    ("'|O', 'fortran_order': False, 'shape': (1,)}", bytes(8)),
    ("'<i8', 'fortran_order': False, 'shape': (-1, -1)}", bytes(8)),
], ids=range(3))  # fmt: skip
def test_an_array_is_what_its_header_says(file, header, data):
    number = Forgery(file).array_of("_predictors", "n_nodes")
    text = f"{{'descr': {header}\n".encode()
    magic = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
    members = {f"arrays/{number}.npy": magic + text + data}
    assert_refused(file, "is damaged", lambda x: x.arrays.pop(number), members)


def test_other_and_unfitted_estimators_are_refused(tmp_path):
    X, y, *_ = make_data()
    stock = make_estimator(sklearn.ensemble, "real").fit(X, y)
    with pytest.raises(TypeError, match=r"one of sklearn_era \(.*, got sklearn\."):
        save_model(stock, tmp_path / "model.era")
    given = calibration.EraConformalRegressor(stock).fit(X, y, eras=np.arange(y.size))
    with pytest.raises(ModelFileError, match=r"HistGradientBoostingRegressor, which"):
        save_model(given, tmp_path / "model.era")
    with pytest.raises(NotFittedError):
        save_model(HistGradientBoostingRegressor(), tmp_path / "model.era")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", OF_BEFORE, ids=lambda path: path.name)
def test_files_of_earlier_releases_predict_the_same_bits(folder):
    """Each release adds a folder, by model_files_of_before/write.py."""
    told, paths = np.load(folder / "predictions.npz"), sorted(folder.glob("*.era"))
    assert len(paths) == 4
    for path in paths:
        model, metadata = load_model(path)
        assert metadata.era == "week"
        predicted = predictor(model)(told["X"])
        np.testing.assert_array_equal(predicted, told[path.stem])


def responses(model, X, eras):
    """What all methods of an estimator return, with eras and without."""
    methods = "predict predict_proba decision_function predict_interval predict_set"
    found = {}
    for name in [*methods.split(), "transform"]:
        for given in ({}, {"eras": eras}) if hasattr(model, name) else ():
            try:
                value = np.asarray(getattr(model, name)(X, **given))
            except (TypeError, ValueError) as error:  # takes no eras
                value = str(error)
            found[name, len(given)] = value
    return found


def saved_or_refused(model, X, eras, folder, is_saved=None):
    """What is read from a file, which has all that the model has and responds with the
    same bits, and its metadata; or None, if the file is refused and not written.
    """
    path, refusal = folder / "model.era", ""
    try:
        save_model(model, path)
    except ModelFileError as error:
        refusal = str(error)
    assert is_saved in (not refusal, None), refusal
    if refusal:
        assert ". " not in refusal
        assert refusal.endswith(" pickle the estimator.")
        assert [*folder.iterdir()] == []
        return None
    expected, (loaded, metadata) = responses(model, X, eras), load_model(path)
    for name, found in responses(loaded, X, eras).items():
        assert np.asarray(found).dtype == np.asarray(expected[name]).dtype
        np.testing.assert_array_equal(found, expected[name])
    assert metadata.estimator == type(loaded).__name__ == type(model).__name__
    assert {*vars(loaded), "_scorer"} == {*vars(model), "_scorer"}
    assert repr(clone(loaded)) == repr(clone(model))
    return loaded, metadata


PLACES = np.arange(80)
LETTERS = np.array([*"abcde"])[PLACES % 5]
DAYS = np.datetime64("2024-01-01", "s") + PLACES % 5 * np.timedelta64(1, "D")
SPECIAL = np.where(PLACES < 9, np.inf, np.where(PLACES > 70, -np.inf, PLACES / 7))
# By kind: whether a file holds it, and the values, of which some are categories.
COLUMNS = {
    "float64": (True, PLACES / 7, False), "float32": (True, np.float32(SPECIAL), False),
    "bool": (True, PLACES % 3 > 0, False), "int8": (True, np.int8(PLACES % 9), False),
    "infinite": (True, SPECIAL, False),
    "infinite and missing": (True, np.where(PLACES % 4, SPECIAL, np.nan), False),
    "without values": (True, np.full(80, np.nan), False),
    "text": (True, LETTERS, True), "truth": (True, PLACES % 3 > 0, True),
    "text or missing": (True, np.where(PLACES % 4, LETTERS.astype("O"), None), True),
    "integers": (True, PLACES % 5, True), "floats": (True, PLACES % 5 / 7, True),
    "dates": (True, DAYS, True), "durations": (True, DAYS - DAYS[0], True),
    "dates or missing": (True, np.where(PLACES % 4, DAYS, np.datetime64("NaT")), True),
    "many": (True, np.char.add("c", PLACES.astype(str)), True),
    "many integers": (True, PLACES, True), "none": (True, np.full(80, np.nan), True),
    "bytes": (False, LETTERS.astype("S").astype("O"), True),
    "calendar dates": (None, [date(2024, 1, 1 + i % 5) for i in PLACES], True),
}  # fmt: skip
FEW = {"max_iter": 2, "max_bins": 16, "min_samples_leaf": 2, "max_leaf_nodes": 4}
LITTLE = HistGradientBoostingRegressor(**FEW)
SMALLER = ensemble.HistGradientBoostingClassifier(**FEW)
TREES = {"n_estimators": 2, "max_bins": 16}
LINEAR = {"members": [("linear", LinearRegressor("squared_error"))]}
ESTIMATORS = [
    (LITTLE, 0), (SMALLER, 2), (SMALLER, 3), (JustTrainTwice(SMALLER), 2),
    (ensemble.EraForestRegressor(**TREES), 0),
    (ensemble.EraForestClassifier(**TREES), 3),
    (ensemble.TimeRobustForestRegressor(**TREES, min_samples_per_era=1), 0),
    (ensemble.TimeRobustForestClassifier(**TREES, min_samples_per_era=1), 2),
    (ensemble.InvariantForestRegressor(**TREES), 0),
    (ensemble.InvariantForestClassifier(**TREES), 3),
    (RuleEnsembleClassifier(n_estimators=2, disjunctions=True), 2),
    (RuleEnsembleClassifier(n_estimators=2), 3),
    (EraSearchCV(LITTLE, {"max_leaf_nodes": [4]}, cv=2), 0),
    (auto.AutoEraRegressor(LITTLE, members=["leaves_4"], cv=2), 0),
    (auto.AutoEraRegressor(LITTLE, **LINEAR, cv=2), 0),
    (auto.AutoEraClassifier(
        SMALLER, members=[("linear", LinearClassifier("log_loss"))], cv=2), 3),
    (calibration.EraConformalRegressor(LITTLE, cv=2), 0),
    (calibration.EraConformalClassifier(SMALLER, cv=2), 3),
    (calibration.EraCalibratedClassifier(SMALLER, cv=2), 2),
    (preprocessing.EraTargetRegressor(LITTLE), 0),
    (preprocessing.EraRankTransformer(), 0),
    (preprocessing.EraRankTransformer(unseen="train"), 0),
    (preprocessing.EraStandardScaler(robust=True, unseen="train"), 0),
    (preprocessing.EraNeutralizer([1], unseen="train"), 0),
    (preprocessing.EraTargetTransformer(level="last"), 0),
    (preprocessing.EraTargetEncoder(variation=True), 0),
    (preprocessing.EraTargetEncoder(count=True), 3),
]  # fmt: skip


TRANSFORMERS = preprocessing.EraTargetRegressor, preprocessing.EraTargetEncoder
TRANSFORMERS += (preprocessing._base.EraTransformer,)


def test_all_estimators_are_tried():
    assert {type(model).__name__ for model, _ in ESTIMATORS} == {*CLASSES}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["pandas", slow("polars")])
@pytest.mark.parametrize(("model", "n_classes", "kind"), [
    (model, n_classes, kind)
    if i == 0 or kind == ("float64" if isinstance(model, TRANSFORMERS) else "text")
    else slow(model, n_classes, kind)
    for i, (model, n_classes) in enumerate(ESTIMATORS) for kind in COLUMNS
])  # fmt: skip
def test_what_cannot_be_read_is_not_written(model, n_classes, kind, library, tmp_path):
    pandas = pytest.importorskip("pandas")
    is_saved, values, is_category = COLUMNS[kind]
    eras, x = PLACES // 20, np.sin(PLACES)
    X = pandas.DataFrame({"a": values, "b": x, "c": x > 0})
    if is_category:
        X["a"] = X["a"].astype("category")
    if library == "polars":
        X = pytest.importorskip("polars").from_pandas(X)
    y = x + PLACES % 5 if n_classes == 0 else PLACES // 2 % n_classes
    given = {} if isinstance(model, JustTrainTwice) else {"eras": eras}
    model = clone(model)
    try:
        model.fit(X, y, **given)
    except (TypeError, ValueError):  # polars has no categories of dates or bytes
        is_booster = isinstance(model, HistGradientBoostingRegressor | type(SMALLER))
        assert library == "polars" or not is_booster
        pytest.skip("no estimator of such columns")
    is_average = hasattr(model, "members_")  # a linear member may hold no dates
    if is_average if is_saved else type(model) is not HistGradientBoostingRegressor:
        is_saved = None
    found = saved_or_refused(model, X, eras, tmp_path, is_saved)
    if found and kind == "text" and not isinstance(model, TRANSFORMERS):
        loaded, metadata = found
        assert metadata.categorical_features == ["a"]
        clone(loaded).fit(X, y, **given)


def labels_of_eras():
    pandas, code = pytest.importorskip("pandas"), PLACES // 20
    weeks = np.char.add("2024-0", (code + 1).astype(str))
    days = np.datetime64("2024-01-01") + code
    return {
        "int": code, "float": code / 2, "text": weeks, "days": days,
        "uint8": np.uint8(code), "objects": weeks.astype(object),
        "seconds": days.astype("M8[s]"), "periods": pandas.PeriodIndex(days, freq="D"),
        "quarters": pandas.PeriodIndex(days + 200 * code, freq="Q-NOV"),
        "categories": pandas.Series(weeks, dtype="category"),
        "calendar dates": pandas.Series(days.tolist()),
        "time zone": pandas.Series(days).dt.tz_localize("UTC"),
        "durations": days - days[0], "pandas durations": pandas.Series(days - days[0]),
        "objects of durations": (days - days[0]).astype("m8[us]").astype(object),
    }  # fmt: skip


@pytest.mark.parametrize("kind", [
    "int", slow("float"), "text", "days", slow("uint8"), slow("objects"),
    slow("seconds"), "periods", "quarters", slow("categories"), "calendar dates",
    "time zone", "durations", "pandas durations", "objects of durations",
])  # fmt: skip
def test_eras_of_a_file_are_those_of_the_fit(kind, tmp_path):
    eras = labels_of_eras()[kind]
    order = {"era_effects": "intercept", "era_order": "ordered"}
    model = HistGradientBoostingRegressor(**FEW, **order)
    X = np.sin(PLACES)[:, np.newaxis]
    is_saved = None if kind in ("calendar dates", "time zone") else True
    model.fit(X, X[:, 0] + PLACES // 20, eras=eras)
    saved_or_refused(model, X, eras, tmp_path, is_saved)


@pytest.mark.parametrize("labels", [
    np.array([1.0, 2.0, 5.0]), np.array([True, False, True]), np.uint8([7, 8, 9]),
    np.array(["a", "b", "c"], object), np.array([0, 1, 2]), np.array([0, 0, 1]),
    np.array(["a", "b", "c"]), np.array(["2024-01-01", "2024-01-02"], "M8[D]"),
], ids=lambda labels: labels.dtype.str)  # fmt: skip
def test_classes_of_a_file_are_those_of_the_fit(labels, tmp_path):
    X = np.sin(PLACES)[:, np.newaxis]
    model = clone(SMALLER).fit(X, labels[PLACES % labels.size])
    loaded, _ = round_trip(model, tmp_path)
    assert_same_model(loaded, model, X)
    assert loaded.classes_.dtype == model.classes_.dtype


@pytest.mark.parametrize("name", ["target", "era"])
def test_names_are_text(name, regressor, tmp_path):
    with pytest.raises(TypeError, match=f"{name} must be the name of a column, got 3"):
        save_model(regressor, tmp_path / "model.era", **{name: 3})
    assert [*tmp_path.iterdir()] == []
    _, metadata = round_trip(regressor, tmp_path, **{name: np.str_("x")})
    assert getattr(metadata, name) == "x"


@pytest.mark.parametrize(("horizon", "stored"), [(np.int64(2), 2), ("28D", "28D")])
def test_a_horizon_is_a_number_or_text(horizon, stored, regressor, tmp_path):
    _, metadata = round_trip(regressor, tmp_path, horizon=horizon)
    assert metadata.horizon == stored


def test_a_file_that_load_model_would_refuse_is_not_put_in_place(
    saved, regressor, monkeypatch
):
    monkeypatch.setattr(module, "_MAX_JSON", 1000)
    before = saved.read_bytes()
    message = r"cannot be saved, as .* \(model.json is too large\): pickle"
    with pytest.raises(ModelFileError, match=message):
        save_model(regressor, saved)
    assert (saved.read_bytes(), [*saved.parent.iterdir()]) == (before, [saved])


@pytest.mark.parametrize(("make", "message"), [
    (lambda: clone(LITTLE).set_params(scoring=len), "name its `scoring` by a string"),
    (lambda: preprocessing.EraTargetRegressor(Ridge()), "Ridge, .* cannot: pickle"),
    (lambda: ensemble.EraForestRegressor(30, oob_score=mean_absolute_error),
     "set its `oob_score` to a bool"),
], ids=range(3))  # fmt: skip
def test_the_remedy_is_that_of_the_part(make, message, tmp_path):
    X, y = np.sin(PLACES)[:, np.newaxis], np.cos(PLACES)
    model = make()
    with pytest.raises(ModelFileError, match=message) as raised:
        save_model(model.fit(X, y, eras=PLACES // 20), tmp_path / "model.era")
    assert "pass" not in str(raised.value)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.filterwarnings("ignore:. eras were left out")
@pytest.mark.parametrize("n", [0, 5, 7, *map(slow, (10, 16, 18, 19))])
def test_a_memory_mapped_estimator_is_saved(n, tmp_path):
    model, n_classes = ESTIMATORS[n]
    X = np.column_stack([np.sin(PLACES), PLACES % 7])
    y = X[:, 1] if n_classes == 0 else PLACES // 2 % n_classes
    model = clone(model).fit(X, y, eras=PLACES // 20)
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    loaded, _ = round_trip(mapped, tmp_path)
    for name, found in responses(loaded, X, None).items():
        np.testing.assert_array_equal(found, responses(model, X, None)[name])


@pytest.mark.parametrize(("target", "parameters"), [
    ("real", {"scoring": "r2", "early_stopping": True}),
    ("binary", {"scoring": "accuracy", "early_stopping": True}),
    slow("multiclass", {"scoring": None, "early_stopping": True}),
    slow("real", {"scoring": "loss", "early_stopping": True}),
    slow("real", {"scoring": None, "early_stopping": True, "validation_eras": None}),
    slow("real", {"scoring": "r2", "era_effects": "intercept"}),
    ("real", {"era_effects": Intercepts("auto"), "early_stopping": True,
              "validation_eras": "last"}),
    slow("real", {"max_features": 0.5, "era_weighting": GroupDRO(0.2)}),
])  # fmt: skip
def test_a_warm_start_goes_on_as_after_pickle(target, parameters, tmp_path):
    model, X, y, eras = fit(target, warm_start=True, **SMALL | parameters)
    pickled = pickle.loads(pickle.dumps(model))
    loaded, _ = round_trip(model, tmp_path)
    for each in (pickled, loaded):
        each.set_params(max_iter=6).fit(X, y, eras=eras)
    assert loaded.n_iter_ == pickled.n_iter_ > model.n_iter_
    assert_same_model(loaded, pickled, X)
    np.testing.assert_array_equal(loaded.validation_score_, pickled.validation_score_)
