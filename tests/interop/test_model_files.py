"""Model files: they predict what was saved, and what they refuse."""

import io
import json
import sys
import zipfile
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor as UpstreamRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error

import sklearn_era
from sklearn_era import model_files
from sklearn_era._optional import MissingPackageError
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.ensemble._estimators import ERA_PARAMETER_CONSTRAINTS
from sklearn_era.model_files import (
    ModelFileError,
    load_model,
    read_metadata,
    save_model,
)

pytest.importorskip("skops")

N_SAMPLES = 400


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N_SAMPLES, 5))
    y = X[:, 0] + rng.standard_normal(N_SAMPLES)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 4] = rng.randint(0, 6, N_SAMPLES)
    return X, y, rng.randint(0, 4, N_SAMPLES)


@pytest.fixture
def regressor(data):
    X, y, eras = data
    return HistGradientBoostingRegressor(
        max_iter=5, categorical_features=[4], split_criterion="era"
    ).fit(X, y, eras=eras)


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
        {},
        {"split_criterion": "era", "boltzmann_alpha": -np.inf},
        {"split_criterion": "directional", "min_direction_agreement": 0.5},
        {"split_criterion": "time_robust", "period_aggregation": "mean"},
        {"split_criterion": "invariant", "invariance_statistic": "changing_rate"},
        {"split_criterion": "vrex", "min_era_coverage": 0.5},
        {"split_criterion": {"era": 0.5, "directional": 1}},
        {"split_criterion": {"vrex": np.float32(0.5), "gain": np.int64(0)}},
        {"early_stopping": True, "validation_eras": None},
        {"categorical_features": [4]},
        {"early_stopping": True, "scoring": None},
        {"early_stopping": True, "scoring": "r2"},
        {"loss": "quantile", "quantile": 0.3},
        {"loss": "absolute_error"},
        {"loss": "poisson"},
        {"loss": "gamma"},
        {"random_state": np.random.RandomState(3), "max_features": 0.5},
        {"monotonic_cst": [1, 0, 0, 0, 0], "interaction_cst": "pairwise"},
    ],
    ids=repr,
)
def test_regressor_round_trip(data, parameters, tmp_path):
    X, y, eras = data
    if parameters.get("loss") in ("poisson", "gamma"):
        y = np.exp(y)
    estimator = HistGradientBoostingRegressor(**{"max_iter": 5, **parameters})
    estimator.fit(X, y, eras=eras)
    save_model(estimator, tmp_path / "model.skops")
    loaded, metadata = load_model(tmp_path / "model.skops")
    assert type(loaded) is HistGradientBoostingRegressor
    assert np.array_equal(loaded.predict(X), estimator.predict(X))
    assert loaded.n_iter_ == estimator.n_iter_
    assert loaded.split_criterion == metadata.split_criterion
    for name in ERA_PARAMETER_CONSTRAINTS:
        assert getattr(loaded, name) == getattr(estimator, name)
    for mine, theirs in zip(loaded._predictors, estimator._predictors, strict=True):
        for tree, other in zip(mine, theirs, strict=True):
            assert vars(tree).keys() == vars(other).keys()
            for name, array in vars(tree).items():
                assert array.dtype == getattr(other, name).dtype
                assert np.array_equal(array, getattr(other, name))
    # What is left out is of the fit only: the loaded one can be fitted as before.
    left_out = set(vars(estimator)) - set(vars(loaded))
    assert left_out <= {"_scorer", "_raw_predict"}
    loaded.fit(X, y, eras=eras)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([0, 0, 1]),
        np.array([False, False, True]),
        np.array(["a", "b", "c"]),
        np.array(["a", "b", "c"], object),
    ],
    ids=["int", "binary", "bool", "str", "object"],
)
def test_classifier_round_trip(data, labels, tmp_path):
    X, y, eras = data
    y = labels[np.digitize(y, [-1, 1])]
    estimator = HistGradientBoostingClassifier(max_iter=5).fit(X, y, eras=eras)
    save_model(estimator, tmp_path / "model.skops")
    loaded, _ = load_model(tmp_path / "model.skops")
    assert type(loaded) is HistGradientBoostingClassifier
    assert np.array_equal(loaded.predict_proba(X), estimator.predict_proba(X))
    assert np.array_equal(loaded.predict(X), estimator.predict(X))
    assert loaded.classes_.dtype == estimator.classes_.dtype


def test_frame_round_trip_and_metadata(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, eras = data
    X = pandas.DataFrame(X, columns=list("abcde"))
    X["e"] = pandas.Categorical(X["e"].map("c{:.0f}".format))
    estimator = HistGradientBoostingRegressor(max_iter=5, split_criterion="directional")
    estimator.fit(X, y, eras=eras)
    path = tmp_path / "model.skops"
    written = save_model(estimator, path, target="gain", era="week")
    loaded, metadata = load_model(path)
    assert np.array_equal(loaded.predict(X), estimator.predict(X))
    assert metadata == written == read_metadata(path)
    assert metadata.estimator == "HistGradientBoostingRegressor"
    assert metadata.feature_names == ["a", "b", "c", "d", "e"]
    assert metadata.categorical_features == ["e"]
    assert (metadata.target, metadata.era) == ("gain", "week")
    assert metadata.split_criterion == "directional"
    assert metadata.versions == {
        "sklearn_era": sklearn_era.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def test_metadata_without_names(saved):
    metadata = read_metadata(saved)
    assert metadata.feature_names is None
    assert metadata.categorical_features == [4]


@pytest.mark.parametrize(
    ("split_criterion", "expected"),
    [
        ("vrex", "vrex"),
        ({"era": 0.5, "directional": 1}, {"era": 0.5, "directional": 1.0}),
        (OrderedDict(vrex=np.float32(0.5), era=0), {"vrex": 0.5, "era": 0.0}),
    ],
)
def test_metadata_name_the_criterion_or_the_weights(
    data, tmp_path, split_criterion, expected
):
    X, y, eras = data
    estimator = HistGradientBoostingRegressor(
        max_iter=1, split_criterion=split_criterion
    ).fit(X, y, eras=eras)
    save_model(estimator, tmp_path / "model.skops")
    metadata = read_metadata(tmp_path / "model.skops")
    assert metadata.split_criterion == expected
    assert type(metadata.split_criterion) is type(expected)
    loaded, _ = load_model(tmp_path / "model.skops")
    assert loaded.split_criterion == split_criterion


def test_nothing_is_left_beside_the_file(saved):
    assert [path.name for path in saved.parent.iterdir()] == ["model.skops"]


def test_replaces_a_file_of_the_same_name(regressor, data, saved):
    X, y, eras = data
    other = HistGradientBoostingRegressor(max_iter=2).fit(X, y, eras=eras)
    save_model(other, saved)
    assert np.array_equal(load_model(saved)[0].predict(X), other.predict(X))


@pytest.mark.parametrize("package", ["sklearn_era", "scikit-learn"])
def test_other_version_is_refused_before_it_is_read(saved, package, monkeypatch):
    skops_io = pytest.importorskip("skops.io")
    for name in ("load", "loads", "get_untrusted_types"):
        monkeypatch.setattr(skops_io, name, lambda *args, **kwargs: pytest.fail("read"))
    rewrite(saved, lambda document: document["versions"].update({package: "0.0.7"}))
    versions = {
        "sklearn_era": sklearn_era.__version__,
        "scikit-learn": sklearn.__version__,
    }
    here = "sklearn_era {sklearn_era} with scikit-learn {scikit-learn}"
    with pytest.raises(ModelFileError) as raised:
        load_model(saved)
    assert str(raised.value) == (
        f"{saved} was written by {here.format(**{**versions, package: '0.0.7'})}, and "
        f"this is {here.format(**versions)}: fit the model again, or install the "
        "versions that wrote it."
    )
    assert read_metadata(saved).versions[package] == "0.0.7"


def test_newer_format_is_refused(saved):
    def change(document):
        document.update(format=99, novelty=1)
        document["versions"]["sklearn_era"] = "9.0"

    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=r"newer sklearn_era \(9\.0\); this is"):
        load_model(saved)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04 not a zip"])
def test_other_file_is_refused(content, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model file of sklearn_era"):
        load_model(path)


def test_archive_of_something_else_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ModelFileError, match="is not a model file of sklearn_era"):
        load_model(path)


def test_metadata_of_something_else_are_refused(saved):
    rewrite(saved, lambda document: document.pop("target"))
    with pytest.raises(ModelFileError, match="is not a model file of sklearn_era"):
        read_metadata(saved)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.skops")


def test_damaged_file_is_refused(saved):
    content = bytearray(saved.read_bytes())
    content[len(content) // 3] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.skops is damaged"):
        load_model(saved)


def test_unknown_type_is_refused_unread(regressor, monkeypatch, tmp_path):
    path = tmp_path / "model.skops"
    with monkeypatch.context() as patch:
        patch.setattr(
            model_files,
            "_TRUSTED_TYPES",
            [*model_files._TRUSTED_TYPES, "fractions.Fraction"],
        )
        regressor.note = Fraction(1, 3)
        save_model(regressor, path)
    with pytest.raises(ModelFileError, match=r"holds fractions\.Fraction, which no"):
        load_model(path)


@pytest.mark.parametrize("content", [{}, {"estimator": "x", "trees": {}}, [1]])
def test_archive_without_an_estimator_is_refused(saved, content):
    skops_io = pytest.importorskip("skops.io")
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
        ("left", 10**6),
        ("right", 10**6),
        ("left", 0),
        ("feature_idx", 5),
        ("feature_idx", -1),
        ("bitset_idx", 10**6),
    ],
)
def test_node_that_points_outside_is_refused(
    regressor, tmp_path, monkeypatch, field, value
):
    pack = model_files.pack_trees

    def forge(predictors):
        packed = pack(predictors)
        nodes = packed["nodes"]
        splits = nodes["is_leaf"] == 0
        if field == "bitset_idx":
            splits &= nodes["is_categorical"] == 1
        nodes[field][np.flatnonzero(splits)[0]] = value
        return packed

    monkeypatch.setattr(model_files, "pack_trees", forge)
    save_model(regressor, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="a node of a tree points outside"):
        load_model(tmp_path / "model.skops")


def test_arrays_of_another_length_are_refused(regressor, tmp_path, monkeypatch):
    pack = model_files.pack_trees

    def forge(predictors):
        packed = pack(predictors)
        packed["n_nodes"][0, 0] += 1
        return packed

    monkeypatch.setattr(model_files, "pack_trees", forge)
    save_model(regressor, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="trees do not fit each other"):
        load_model(tmp_path / "model.skops")


@pytest.mark.parametrize(
    "scoring", [make_scorer(mean_absolute_error), lambda estimator, X, y: 0.0]
)
def test_function_of_the_user_is_refused(data, scoring, saved):
    before = saved.read_bytes()
    X, y, eras = data
    estimator = HistGradientBoostingRegressor(
        max_iter=2, early_stopping=True, scoring=scoring
    ).fit(X, y, eras=eras)
    with pytest.raises(ModelFileError, match="name its `scoring` by a string"):
        save_model(estimator, saved)
    assert saved.read_bytes() == before


def test_estimator_of_another_class_is_refused(data, tmp_path):
    X, y, _ = data
    with pytest.raises(TypeError, match=r"of sklearn_era\.ensemble, got sklearn\."):
        save_model(UpstreamRegressor(max_iter=1).fit(X, y), tmp_path / "model.skops")


def test_unfitted_estimator_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(HistGradientBoostingRegressor(), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(regressor, tmp_path):
    with pytest.raises(FileNotFoundError):
        save_model(regressor, tmp_path / "none" / "model.skops")


def test_missing_package_names_the_extra(regressor, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.delitem(sys.modules, "skops.io", raising=False)
    with pytest.raises(
        MissingPackageError,
        match=r"skops is not installed.*pip install 'sklearn-era\[cli\]'",
    ):
        save_model(regressor, tmp_path / "model.skops")
