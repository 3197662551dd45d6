"""Model files: they predict what was saved, and what they refuse."""

import io
import json
import sys
import zipfile
from collections import OrderedDict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.callback import ScoringMonitor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error

import sklearn_era
from helpers.criteria import CRITERIA
from helpers.data import make_data
from helpers.estimators import make_estimator
from helpers.grids import slow
from helpers.trees import assert_same_model, trees_of
from sklearn_era import ensemble, model_files
from sklearn_era._optional import MissingPackageError
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._boosters.estimators import ERA_PARAMETER_CONSTRAINTS
from sklearn_era.model_files import (
    ModelFileError,
    load_model,
    read_metadata,
    save_model,
)

skops_io = pytest.importorskip("skops.io")

SKLEARN = "scikit-learn"
OF_BEFORE = sorted((Path(__file__).parent / "model_files_of_before").glob("[0-9]*"))


def fit(target="real", **parameters):
    """A fitted estimator, X, y and eras; column 0 holds categories."""
    X, y, _, eras = make_data(target)
    parameters = {"categorical_features": [0]} | parameters
    model = make_estimator(ensemble, target, **parameters)
    return model.fit(X, y, eras=eras), X, y, eras


@pytest.fixture
def regressor():
    return fit(split_criterion="era")[0]


@pytest.fixture
def saved(regressor, tmp_path):
    path = tmp_path / "model.skops"
    save_model(regressor, path, target="y", era="week")
    return path


def rewrite(path, change):
    """Replace the metadata of a model file by what `change` makes of it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members[model_files._METADATA_MEMBER])
    change(document)
    members[model_files._METADATA_MEMBER] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "parameters",
    [
        *(p if i % 4 == 0 else slow(p) for i, p in enumerate(CRITERIA.values())),
        {"split_criterion": {"vrex": np.float32(0.5), "gain": np.int64(0)}},
        {"split_criterion": "vrex", "min_era_coverage": 0.5},
        {"early_stopping": True, "validation_eras": None},
        {"categorical_features": None}, {"early_stopping": True, "scoring": None},
        {"early_stopping": True, "scoring": "r2"},
        {"loss": "quantile", "quantile": 0.3}, {"loss": "absolute_error"},
        {"loss": "poisson"}, {"loss": "gamma"},
        {"random_state": np.random.RandomState(3), "max_features": 0.5},
        {"monotonic_cst": [0, 1, 0, 0, 0], "interaction_cst": "pairwise"},
    ],
    ids=", ".join,
)  # fmt: skip
def test_regressor_round_trip(parameters, tmp_path):
    is_positive = parameters.get("loss") in ("poisson", "gamma")
    model, X, y, eras = fit("positive" if is_positive else "real", **parameters)
    callbacks = [ScoringMonitor(scoring="r2")]
    save_model(model.set_callbacks(*callbacks), tmp_path / "model.skops")
    loaded, metadata = load_model(tmp_path / "model.skops")
    assert type(loaded) is HistGradientBoostingRegressor
    assert loaded.split_criterion == metadata.split_criterion
    for name in ERA_PARAMETER_CONSTRAINTS:
        assert getattr(loaded, name) == getattr(model, name)
    assert_same_model(loaded, model, X)
    for tree, other in zip(trees_of(loaded), trees_of(model), strict=True):
        assert vars(tree).keys() == vars(other).keys()
        for name, array in vars(tree).items():
            assert array.dtype == getattr(other, name).dtype
            assert np.array_equal(array, getattr(other, name))
    # What is left out is of the fit only: the loaded one can be fitted as before.
    assert model._skl_callbacks == callbacks
    of_the_fit = {"_scorer", "_raw_predict", "_skl_callbacks"}
    assert {"_skl_callbacks"} <= set(vars(model)) - set(vars(loaded)) <= of_the_fit
    loaded.fit(X, y, eras=eras)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([False, False, True]),
        np.array(["a", "b", "c"]), np.array(["a", "b", "c"], object),
    ],
    ids=["int", "binary", "bool", "str", "object"],
)  # fmt: skip
def test_classifier_round_trip(labels, tmp_path):
    X, y, _, eras = make_data("multiclass")
    model = make_estimator(ensemble, "multiclass").fit(X, labels[y], eras=eras)
    save_model(model, tmp_path / "model.skops")
    loaded, _ = load_model(tmp_path / "model.skops")
    assert type(loaded) is type(model)
    assert_same_model(loaded, model, X)
    assert loaded.classes_.dtype == model.classes_.dtype


def test_frame_round_trip_and_metadata(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _, eras = make_data()
    X = pandas.DataFrame(X, columns=list("abcde"))
    X["a"] = pandas.Categorical(X["a"].map("c{:.0f}".format))
    model = make_estimator(ensemble, "real", split_criterion="directional")
    model.fit(X, y, eras=eras)
    path = tmp_path / "model.skops"
    written = save_model(model, path, target="gain", era="week")
    loaded, metadata = load_model(path)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert metadata == written == read_metadata(path)
    assert metadata.estimator == "HistGradientBoostingRegressor"
    assert metadata.feature_names == ["a", "b", "c", "d", "e"]
    assert metadata.categorical_features == ["a"]
    assert (metadata.target, metadata.era) == ("gain", "week")
    assert metadata.split_criterion == "directional"
    assert metadata.versions == {
        "sklearn_era": sklearn_era.__version__, "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("split_criterion", "expected"),
    [
        ("vrex", "vrex"),
        ({"era": 0.5, "directional": 1}, {"era": 0.5, "directional": 1.0}),
        (OrderedDict(vrex=np.float32(0.5), era=0), {"vrex": 0.5, "era": 0.0}),
    ],
)
def test_metadata_name_the_criterion_or_the_weights(
    tmp_path, split_criterion, expected
):
    model, *_ = fit(max_iter=1, split_criterion=split_criterion)
    save_model(model, tmp_path / "model.skops")
    metadata = read_metadata(tmp_path / "model.skops")
    assert metadata.split_criterion == expected
    assert type(metadata.split_criterion) is type(expected)
    assert (metadata.feature_names, metadata.categorical_features) == (None, [0])
    loaded, _ = load_model(tmp_path / "model.skops")
    assert loaded.split_criterion == split_criterion


def test_replaces_a_file_of_the_same_name_and_leaves_nothing_beside_it(saved):
    other, X, *_ = fit(max_iter=2)
    save_model(other, saved)
    assert np.array_equal(load_model(saved)[0].predict(X), other.predict(X))
    assert [path.name for path in saved.parent.iterdir()] == ["model.skops"]


def test_another_minor_version_of_sklearn_is_refused_before_it_is_read(
    saved, monkeypatch
):
    for name in ("load", "loads", "get_untrusted_types"):
        monkeypatch.setattr(skops_io, name, lambda *args, **kwargs: pytest.fail("read"))
    rewrite(saved, lambda document: document["versions"].update({SKLEARN: "1.8.2"}))
    with pytest.raises(ModelFileError) as raised:
        load_model(saved)
    assert str(raised.value) == (
        f"{saved} was written with scikit-learn 1.8.2, and this is scikit-learn "
        f"{sklearn.__version__}: fit the model again, or install scikit-learn 1.8."
    )
    assert read_metadata(saved).versions[SKLEARN] == "1.8.2"


def test_another_version_is_read_by_its_format(regressor, saved, monkeypatch):
    """Of sklearn_era, and of scikit-learn's patches; later ones may tell more."""
    _, X, *_ = fit()
    patch = sklearn.__version__.rpartition(".")[0] + ".99"
    changes = {"sklearn_era": "0.0.7", SKLEARN: patch}

    def change(document):
        document.update(novelty=1)
        document["versions"].update(changes)

    rewrite(saved, change)
    monkeypatch.setattr(sklearn_era, "__version__", "0.2.0")
    loaded, metadata = load_model(saved)
    assert {name: metadata.versions[name] for name in changes} == changes
    assert_same_model(loaded, regressor, X)
    # The objects in it tell of the versions that made them as well.
    monkeypatch.setattr(sklearn.base, "__version__", patch)
    assert_same_model(load_model(saved)[0], regressor, X)


def test_a_parameter_that_the_file_does_not_know_has_its_default(regressor, tmp_path):
    path = tmp_path / "model.skops"
    del regressor.__dict__["period_aggregation"]
    save_model(regressor, path)
    loaded, _ = load_model(path)
    default = HistGradientBoostingRegressor().period_aggregation
    assert loaded.get_params()["period_aggregation"] == default
    assert np.array_equal(loaded.predict(fit()[1]), regressor.predict(fit()[1]))


def test_newer_format_is_refused(saved):
    def change(document):
        document.update(format=99, novelty=1)
        document["versions"]["sklearn_era"] = "9.0"

    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=r"newer sklearn_era \(9\.0\); this is"):
        load_model(saved)


def test_files_archives_and_metadata_of_something_else_are_refused(saved):
    rewrite(saved, lambda document: document.pop("target"))
    contents = [saved.read_bytes(), b"", b"a,b\n1,2\n", b"PK\x03\x04 not a zip"]
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("schema.json", "{}")
    for content in (saved.read_bytes(), *contents):
        saved.write_bytes(content)
        for read in (load_model, read_metadata):
            with pytest.raises(ModelFileError, match="is not a model file of sklearn"):
                read(saved)


def test_missing_file_folder_and_package(regressor, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.skops")
    with pytest.raises(FileNotFoundError):
        save_model(regressor, tmp_path / "none" / "model.skops")
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.delitem(sys.modules, "skops.io", raising=False)
    message = r"skops is not installed.*pip install 'sklearn-era\[cli\]'"
    with pytest.raises(MissingPackageError, match=message):
        save_model(regressor, tmp_path / "model.skops")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"versions": "1.0"}, "is not a model file of"),
        ({"target": 3}, "is not a model file of"),
        ({"feature_names": ["a"]}, "is damaged: its metadata describe another model"),
        ({"feature_names": 3}, "is damaged: its metadata describe another model"),
        ({"categorical_features": None}, "is damaged: its metadata describe another"),
        ({"estimator": "EraForestRegressor"}, "is damaged: its metadata describe"),
    ],
    ids=str,
)
def test_metadata_of_another_model_are_refused(saved, change, message):
    rewrite(saved, lambda document: document.update(change))
    with pytest.raises(ModelFileError, match=message):
        load_model(saved)


@pytest.mark.parametrize("at", range(0, 60, 6))
def test_metadata_with_a_damaged_byte_are_refused(saved, at):
    with zipfile.ZipFile(saved) as archive:
        member = archive.getinfo(model_files._METADATA_MEMBER)
    content = bytearray(saved.read_bytes())
    content[member.header_offset + 30 + len(member.filename) + at] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model file of sklearn_era"):
        load_model(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_deeply_nested_metadata_are_refused(saved):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr(model_files._METADATA_MEMBER, "[" * 100_000)
    with pytest.raises(ModelFileError, match="is not a model file of sklearn_era"):
        load_model(saved)


def test_damaged_file_is_refused(saved):
    content = bytearray(saved.read_bytes())
    content[len(content) // 3] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.skops is damaged"):
        load_model(saved)


def test_unknown_type_is_refused_unread(regressor, monkeypatch, tmp_path):
    path = tmp_path / "model.skops"
    trusted = [*model_files._TRUSTED_TYPES, "fractions.Fraction"]
    with monkeypatch.context() as patch:
        patch.setattr(model_files, "_TRUSTED_TYPES", trusted)
        regressor.note = Fraction(1, 3)
        save_model(regressor, path)
    with pytest.raises(ModelFileError, match=r"holds fractions\.Fraction, which no"):
        load_model(path)


@pytest.mark.parametrize("content", [{}, {"estimator": "x", "trees": {}}, [1]])
def test_archive_without_an_estimator_is_refused(saved, content):
    buffer = io.BytesIO()
    skops_io.dump(content, buffer)
    with zipfile.ZipFile(saved) as archive:
        metadata = archive.read(model_files._METADATA_MEMBER)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(model_files._METADATA_MEMBER, metadata)
    saved.write_bytes(buffer.getvalue())
    with pytest.raises(ModelFileError, match=r"model\.skops is damaged"):
        load_model(saved)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**6), ("right", 10**6), ("left", 0), ("feature_idx", 5),
        ("feature_idx", -1), ("bitset_idx", 10**6), ("n_nodes", None),
    ],
)  # fmt: skip
def test_forged_trees_are_refused(regressor, tmp_path, monkeypatch, field, value):
    pack = model_files.pack_trees
    other = {"n_nodes": "trees do not fit each other"}
    message = other.get(field, "a node of a tree points outside")

    def pack_forged(predictors):
        packed = pack(predictors)
        nodes = packed["nodes"]
        splits = nodes["is_leaf"] == 0
        if field == "bitset_idx":
            splits &= nodes["is_categorical"] == 1
        if field == "n_nodes":
            packed["n_nodes"][0, 0] += 1
        else:
            nodes[field][np.flatnonzero(splits)[0]] = value
        return packed

    monkeypatch.setattr(model_files, "pack_trees", pack_forged)
    save_model(regressor, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "model.skops")


def test_rows_of_another_width_are_refused(saved):
    """By a forged preprocessor, which hands on fewer features than the trees know."""
    model, _ = load_model(saved)
    encoder, (name, function, columns), *rest = model._preprocessor.transformers_
    fewer = columns & (np.arange(columns.size) < columns.size - 1)
    model._preprocessor.transformers_ = [encoder, (name, function, fewer), *rest]
    save_model(model, saved)
    with pytest.raises(ModelFileError, match="another number of features than its t"):
        load_model(saved)


@pytest.mark.parametrize(
    "scoring", [make_scorer(mean_absolute_error), lambda estimator, X, y: 0.0]
)
def test_function_of_the_user_is_refused(scoring, saved):
    before = saved.read_bytes()
    model, *_ = fit(max_iter=2, early_stopping=True, scoring=scoring)
    with pytest.raises(ModelFileError, match="name its `scoring` by a string"):
        save_model(model, saved)
    assert saved.read_bytes() == before


def test_dates_of_eras_with_intercepts_are_numpys(tmp_path):
    X, y, _, eras = make_data()
    model = HistGradientBoostingRegressor(max_iter=2, era_effects="intercept")
    days = np.datetime64("2024-01-01") + eras
    save_model(model.fit(X, y, eras=days), tmp_path / "m.skops")
    loaded, _ = load_model(tmp_path / "m.skops")
    assert np.array_equal(loaded.predict(X, eras=days), model.predict(X, eras=days))
    model.fit(X, y, eras=days.astype(object))
    with pytest.raises(ModelFileError, match=r"datetime.date, .* eras that are text"):
        save_model(model, tmp_path / "m.skops")


def test_other_and_unfitted_estimators_are_refused(tmp_path):
    X, y, *_ = make_data()
    stock = make_estimator(sklearn.ensemble, "real").fit(X, y)
    with pytest.raises(TypeError, match=r"of sklearn_era\.ensemble, got sklearn\."):
        save_model(stock, tmp_path / "model.skops")
    with pytest.raises(NotFittedError):
        save_model(HistGradientBoostingRegressor(), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", OF_BEFORE, ids=lambda path: path.name)
def test_files_of_earlier_releases_predict_the_same_bits(folder):
    """Each release adds a folder, by model_files_of_before/write.py."""
    told = np.load(folder / "predictions.npz")
    paths = sorted(folder.glob("*.skops"))
    assert len(paths) == 4
    for path in paths:
        model, metadata = load_model(path)
        assert metadata.era == "week"
        is_classes = path.stem.endswith("classifier")
        predicted = (model.predict_proba if is_classes else model.predict)(told["X"])
        np.testing.assert_array_equal(predicted, told[path.stem])
