"""Make the estimator of a fit, and read its features, its target and its eras."""

from collections.abc import Sequence
from typing import Any

from sklearn_era import auto, ensemble
from sklearn_era._era_axes import likeness_to_time
from sklearn_era._era_labels import label_texts
from sklearn_era._eras import check_order, encode_eras
from sklearn_era._tables.columns import list_columns
from sklearn_era._warnings import refuse_moved
from sklearn_era.cli import _table_files
from sklearn_era.cli._ui import (
    InputError,
    check_known,
    echo,
    one_sentence,
    parse_value,
    refused,
)
from sklearn_era.ensemble._parameter_table import MOVED
from sklearn_era.model_selection._times_and_groups import steps_of

_Names = Sequence[str] | None


def read_training(
    table: _table_files.TableFile, target: str, era: str | None, groups: str | None,
    features: _Names, exclude: _Names, categorical: _Names, task: str,
) -> tuple[Any, Any, bool, Any]:  # fmt: skip
    """Read the columns that options name. Return the features, the target, whether the
    target has classes, and the eras (None without --era). Raise InputError if options
    contradict each other or values are missing.
    """
    labels = table.distinct({"--target": target, "--era": era, "--groups": groups})
    asked = table.select(features, "--features")
    excluded = {*table.select(exclude, "--exclude")}
    for name in {*asked}.intersection(labels) - excluded:
        text = f"'{name}' is the {labels[name]} column"
        raise InputError(f"--features: {text}; leave it out with --exclude.")
    excluded |= {*labels, *(() if asked else table.index)}
    names = [name for name in asked or table.columns if name not in excluded]
    if not names:
        raise InputError("--features: no columns are left.")
    declared = table.select(categorical, "--categorical")
    for name in {*declared}.difference(names):
        what = f"the {labels[name]} column, which is no" if name in labels else "not a"
        raise InputError(f"--categorical: '{name}' is {what} feature.")
    declared += [name for name in table.categories if name in names]
    frame = table.read([*names, *labels], declared)
    _table_files.refuse_missing(frame, labels)
    others = [name for name in names if name not in declared]
    if found := [name for name in others if _table_files.has_categories(frame[name])]:
        declared += found
        echo(f"Categories, as they are text: {list_columns(found)}.", err=True)
    remedy = "declare it with --categorical, or leave it out with --exclude"
    X = _table_files.make_features(frame[names], declared, remedy, table.decimal)
    y, is_classes = _table_files.make_target(frame[target], task, table)
    used = {name: of for name, of in labels.items() if of != "--target"}
    return X, y, is_classes, _table_files.make_eras(frame, used, table)


def check_times(eras: Any, names: Sequence[Any], era_order: str, horizon: Any) -> int:
    """Return the horizon as a number of eras. Raise InputError if the horizon is not a
    number of eras or a span of time, or spans all eras; if eras have no order; or if
    --groups looks more like a time than --era.
    """
    columns = [encode_eras(x) for x in getattr(eras, "columns", [eras])]
    kinds = [likeness_to_time(x.labels) for x in columns]
    if len(kinds) > 1 and kinds[0] < kinds[1]:
        text = f"'{names[1]}' is rather a time than '{names[0]}'"
        raise InputError(f"--groups: {text}: turn --era and --groups around.")
    try:
        check_order(columns[0], era_order, "--horizon", "--era alone")
    except ValueError as error:
        text = one_sentence(error)
        if len(columns) > 1:
            label = label_texts(columns[0].labels)[0]
            text = f"--era: '{label}' of column '{names[0]}' tells no order: write "
            text += "times so that they sort, such as 2024-05-31 or 2024-W22."
        raise InputError(text) from error
    is_count = type(horizon) is int and horizon > 0
    with refused():  # a text is refused by its value
        given = horizon if is_count else str(horizon)
        steps = steps_of(given, columns[0].labels, "--horizon")
    if steps >= (n_eras := columns[0].labels.size):
        text = f"{horizon} is as long as the {n_eras} eras of '{names[0]}', or longer"
        raise InputError(f"--horizon: {text}.")
    return steps


def make_estimator(name: str, is_classes: bool, pairs: Any, options: Any) -> Any:
    """Return an unfitted estimator with the parameters in the dict `options` and in the
    NAME=VALUE `pairs`, which are added to `options`. Raise InputError for bad pairs.
    """
    kind = "Classifier" if is_classes else "Regressor"
    prefix = "EraForest" if name == "forest" else "HistGradientBoosting"
    estimator = getattr(ensemble, f"{prefix}{kind}")()
    subject = f"--param: {type(estimator).__name__} has no parameter"
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not (key and equals):
            raise InputError(f"--param: '{pair}' is not NAME=VALUE.")
        if key in options:
            raise InputError(f"--param: '{key}' is given twice or has its own option.")
        options[key] = parse_value(text.strip())
    with refused("--param: "):
        refuse_moved(MOVED, options, "the estimators")
        for key in options:
            check_known(key.split("__")[0], estimator._get_param_names(), subject)
        estimator.set_params(**options)
    if name != "auto":
        return estimator
    # One fit at a time, which has the threads: n_jobs bounds their number.
    return getattr(auto, f"AutoEra{kind}")(estimator, era_order=options["era_order"])
