"""The rates of rules: the shares of their class and of others that they cover."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._eras import EncodedEras, label_texts
from .._optional import import_optional
from ._beam import Rule


@dataclass(frozen=True)
class WeightedRule:
    """A rule for a class, with the sum of its steps."""

    rule: Rule
    text: str
    class_index: int  # in `classes_`; 1 of two
    coefficient: float  # added to the class's score, or subtracted if not covered


def rate_rules(
    rules: Sequence[WeightedRule],
    X_binned: NDArray[np.uint8],
    y: NDArray[np.intp],
    classes: NDArray[Any],
    sample_weight: NDArray[np.float64],
    eras: EncodedEras | None,
) -> Bunch:
    """Return the columns of `RuleEnsembleClassifier.rule_table`; `y` has indices of
    classes.
    """
    class_index = np.array([rule.class_index for rule in rules], dtype=np.intp)
    n_rules, n_eras = len(rules), 0 if eras is None else eras.labels.size
    table = Bunch(
        text=np.array([rule.text for rule in rules], dtype=object),
        class_label=classes[class_index],
        coefficient=np.array([rule.coefficient for rule in rules]),
        coverage=np.empty(n_rules),
        tpr=np.empty(n_rules),
        fpr=np.empty(n_rules),
    )
    codes = np.zeros(y.size, dtype=np.int32)
    if eras is not None:
        codes, table.era_labels = eras.codes, eras.labels
        table.tpr_by_era = np.empty((n_rules, n_eras))
        table.fpr_by_era = np.empty((n_rules, n_eras))
    # Weights by era and class.
    cells = codes.astype(np.intp) * classes.size + y
    shape = max(n_eras, 1), classes.size
    totals = np.bincount(cells, sample_weight, shape[0] * shape[1]).reshape(shape)
    for i, rule in enumerate(rules):
        rows = rule.rule.covers(X_binned)
        covered = np.bincount(cells[rows], sample_weight[rows], totals.size)
        covered = covered.reshape(shape)
        table.coverage[i] = covered.sum() / totals.sum()
        of_class = np.arange(classes.size) == rule.class_index
        for name, which in (("tpr", of_class), ("fpr", ~of_class)):
            inside, among = covered[:, which].sum(axis=1), totals[:, which].sum(axis=1)
            table[name][i] = _share(inside.sum(), among.sum())
            if eras is not None:
                table[f"{name}_by_era"][i] = _share(inside, among)
    return table


def _share(covered: Any, total: Any) -> Any:
    """The quotient, NaN without rows."""
    return np.divide(
        covered,
        total,
        out=np.full(np.shape(total), np.nan),
        where=np.asarray(total) > 0,
    )


def rates_frame(table: Bunch) -> Any:
    """The table as a data frame, with a column for each era's rates."""
    pandas = import_optional("pandas", extra="cli")
    names = ("text", "class_label", "coefficient", "coverage", "tpr", "fpr")
    columns = {name: table[name] for name in names}
    if "era_labels" in table:
        for name in ("tpr", "fpr"):
            for j, era in enumerate(label_texts(table.era_labels)):
                columns[f"{name} {era}"] = table[f"{name}_by_era"][:, j]
    return pandas.DataFrame(columns)
