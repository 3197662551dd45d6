"""``sklearn-era predict``: predict the rows of a table with a model file."""

from pathlib import Path
from typing import Annotated

import typer

from sklearn_era._optional import import_optional
from sklearn_era.cli import _errors
from sklearn_era.cli._errors import InputError, argument, count, option


def predict(
    model: Annotated[Path, argument("MODEL", "Model file that fit wrote.")],
    data: _errors.DataArgument,
    out: Annotated[Path, option("FILE", "Table, in the same formats.", "--out", "-o")],
    id_column: Annotated[str | None, option("COL", "Column to copy.", "--id")] = None,
    sep: _errors.SepOption = None,
    encoding: _errors.EncodingOption = None,
) -> None:
    """Predict the rows of DATA and write a table of predictions.

    The table has the rows of DATA, in the same order, and a column 'prediction'. For a
    classifier, that is the class, and each class adds a column 'probability_CLASS'.
    Categories that the model has not seen count as missing, with a warning.
    """
    for package in ("pandas", "pyarrow", "skops"):
        import_optional(package, extra="cli")
    import pandas as pd

    from sklearn_era._tables.columns import list_columns
    from sklearn_era.cli import _tables
    from sklearn_era.model_files import ModelFileError, load_model

    _errors.check_output(out, _tables.SUFFIXES, model, data)
    table = _tables.TableFile(data, sep, encoding)
    try:
        estimator, metadata = load_model(model)
    except (OSError, ModelFileError) as error:
        raise InputError(f"MODEL: {error}") from error
    names = metadata.feature_names
    if names is None:
        raise InputError(f"MODEL: {model} was fitted without column names.")
    known = set(table.columns)
    missing = [name for name in names if name not in known]
    if len(missing) > 1 and len(known) > 1:
        raise InputError(f"DATA: '{data}' lacks the columns {list_columns(missing)}.")
    for name in missing:
        table.find(name, "DATA")
    classes = list(getattr(estimator, "classes_", []))
    headings = ["prediction", *(f"probability_{label}" for label in classes)]
    kept = [] if id_column is None else [table.find(id_column, "--id")]
    if id_column in headings:
        raise InputError(f"--id: '{id_column}' is also a column of the predictions.")

    categorical = [str(name) for name in metadata.categorical_features]
    frame = table.read([*names, *kept], {*kept}.difference(names) | {*categorical})
    remedy = "the model was fitted to numbers"
    X = _tables.make_features(frame[names], categorical, remedy)
    if categorical:
        _tables.match_categories(X, estimator)
    results = [estimator.predict(X)]
    if classes:
        results.extend(estimator.predict_proba(X).T)
    predictions = pd.DataFrame(dict(zip(headings, results, strict=True)))
    _tables.write_table(pd.concat([frame[kept], predictions], axis=1), out)
    typer.echo(f"Wrote {count(len(X), 'prediction')} to {out}.")
