"""A model and its record, written both or neither, and read back together."""

import hashlib
import json
import os
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from helpers.numerai.demo import RECORD
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import save_model
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.training import model_store
from sklearn_era.numerai.training.model_store import load_trained, save_trained

X = np.random.default_rng(1).integers(0, 5, size=(50, 2))


def fit(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(200, 2), dtype=np.int8)
    return Regressor(max_iter=3).fit(X, X[:, 0] + X[:, 1] * 1.0)


def test_a_model_is_read_back_with_its_record(tmp_path):
    model, folder = fit(), tmp_path / "new" / "folder"
    # Of NumPy's whole numbers, JSON has those of Python.
    saved = save_trained(folder, model, replace(RECORD, n_rows=np.int64(1800)))
    read, record = load_trained(folder)
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert record == saved == model_store.read_record(folder)
    assert replace(record, sha256="", created="", versions={}) == RECORD
    content = (folder / "model.skops").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    age = datetime.now(UTC) - datetime.fromisoformat(record.created)
    assert 0 <= age.total_seconds() < 60
    assert {"python", "sklearn_era", "scikit-learn", "numpy"} <= set(record.versions)


@pytest.mark.parametrize("n_done", range(4))
def test_stopped_at_any_step_it_is_the_old_model_or_the_new(
    tmp_path, monkeypatch, n_done
):
    """Model file, record, and the model file's name: three replacements."""
    save_trained(tmp_path, fit(0), RECORD)
    new, replace_file = replace(RECORD, version="v6.0"), os.replace
    left = iter(range(n_done))

    def replace_or_stop(source, target):
        if next(left, None) is None:
            raise KeyboardInterrupt
        replace_file(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_or_stop)
        with pytest.raises(KeyboardInterrupt) if n_done < 3 else nullcontext():
            save_trained(tmp_path, fit(1), new)
    model, record = load_trained(tmp_path)
    is_new = n_done >= 2
    assert record.version == ("v6.0" if is_new else "v5.3")
    np.testing.assert_array_equal(model.predict(X), fit(int(is_new)).predict(X))
    save_trained(tmp_path, fit(1), new)
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.skops"]


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

    model = Classifier(max_iter=1).fit(X, X[:, 0] > 2)
    save_model(model, model_path)
    sha256 = model_store.file_sha256(model_path)
    path.write_text(json.dumps({**document, "sha256": sha256}))
    refused(tmp_path, "holds a HistGradientBoostingClassifier, not")
