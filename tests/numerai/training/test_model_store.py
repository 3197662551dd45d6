"""A model and its record, written both or neither, and read back together."""

import hashlib
import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.model_files import save_model
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.training import model_store
from sklearn_era.numerai.training.model_store import (
    ModelRecord,
    load_trained,
    read_record,
    save_trained,
)

RECORD = ModelRecord(
    model_name="demo",
    version="v5.3",
    feature_set="small",
    features=["feature_a", "feature_b"],
    target="target_demo_20",
    horizon=20,
    purge=8,
    first_era="0001",
    last_era="0574",
    n_eras=574,
    n_rows=2_700_000,
    every_nth_era=1,
    era_groups=0,
    parameters={"split_criterion": {"era": 0.5, "vrex": 0.5}, "max_iter": 3},
)


X = np.random.default_rng(1).integers(0, 5, size=(50, 2))


def fit(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(200, 2), dtype=np.int8)
    return HistGradientBoostingRegressor(max_iter=3).fit(X, X[:, 0] + X[:, 1] * 1.0)


def files_of(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_model_is_read_back_with_its_record(tmp_path):
    model, folder = fit(), tmp_path / "new" / "folder"
    # Of NumPy's whole numbers, JSON has those of Python.
    saved = save_trained(folder, model, replace(RECORD, n_rows=np.int64(2_700_000)))
    read, record = load_trained(folder)
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert record == saved == read_record(folder)
    assert replace(record, sha256="", created="", versions={}) == RECORD
    content = (folder / "model.skops").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    age = datetime.now(UTC) - datetime.fromisoformat(record.created)
    assert 0 <= age.total_seconds() < 60
    assert {"python", "sklearn_era", "scikit-learn", "numpy"} <= set(record.versions)


def test_two_models_side_by_side(tmp_path):
    save_trained(tmp_path, fit(0), RECORD)
    save_trained(tmp_path, fit(1), replace(RECORD, version="v5.2"), "gain")
    assert load_trained(tmp_path)[1].version == "v5.3"
    assert load_trained(tmp_path, "gain")[1].version == "v5.2"
    model_store.remove_trained(tmp_path, "gain")
    assert files_of(tmp_path) == ["model.json", "model.skops"]


@pytest.mark.parametrize("n_done", range(4))
def test_stopped_at_any_step_it_is_the_old_model_or_the_new(
    tmp_path, monkeypatch, n_done
):
    """Model file, record, and the model file's name: three replacements."""
    save_trained(tmp_path, fit(0), RECORD)
    new, n_left = replace(RECORD, version="v6.0"), n_done
    replace_file = os.replace

    def replace_or_stop(source, target):
        nonlocal n_left
        if n_left == 0:
            raise KeyboardInterrupt
        n_left -= 1
        replace_file(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_or_stop)
        try:
            save_trained(tmp_path, fit(1), new)
        except KeyboardInterrupt:
            assert n_done < 3
    model, record = load_trained(tmp_path)
    is_new = n_done >= 2
    assert record.version == ("v6.0" if is_new else "v5.3")
    np.testing.assert_array_equal(model.predict(X), fit(int(is_new)).predict(X))
    save_trained(tmp_path, fit(1), new)
    assert files_of(tmp_path) == ["model.json", "model.skops"]


def refused(folder, message):
    with pytest.raises(DataError, match=message):
        load_trained(folder)


def test_what_cannot_be_read_is_told(tmp_path, monkeypatch):
    refused(tmp_path, "has no trained model 'model': train it first")
    save_trained(tmp_path, fit(), RECORD)
    model_path, path = tmp_path / "model.skops", tmp_path / "model.json"
    content, text = model_path.read_bytes(), path.read_text()

    model_path.write_bytes(content + b"x")
    refused(tmp_path, r"not the model that model.json describes")
    model_path.unlink()
    refused(tmp_path, r"model.skops is missing, though its record")
    model_path.write_bytes(content)

    document = json.loads(text)
    without_purge = {key: x for key, x in document.items() if key != "purge"}
    for written, message in (
        (text[:40], "model.json is damaged, it is no JSON"),
        ("[]", "holds no JSON object"),
        (json.dumps({**document, "format": 9}), "format 9, and this version"),
        (json.dumps({**document, "odd": 9}), "no record of a model: 'odd' is unknown"),
        (json.dumps(without_purge), "no record of a model: 'purge' is missing"),
    ):
        path.write_text(written)
        refused(tmp_path, message)
    path.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr("sklearn_era.__version__", "0.0.0")
        refused(tmp_path, "was written by sklearn_era")
    load_trained(tmp_path)


def test_a_classifier_is_refused(tmp_path):
    save_trained(tmp_path, fit(), RECORD)
    model = HistGradientBoostingClassifier(max_iter=1).fit(X, X[:, 0] > 2)
    save_model(model, tmp_path / "model.skops")
    document = json.loads((tmp_path / "model.json").read_text())
    document["sha256"] = model_store.file_sha256(tmp_path / "model.skops")
    (tmp_path / "model.json").write_text(json.dumps(document))
    refused(tmp_path, "holds a HistGradientBoostingClassifier, not")
