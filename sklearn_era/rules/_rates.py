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
    rules: Sequence[WeightedRule], X_binned: NDArray[np.uint8], y: NDArray[np.intp],
    classes: NDArray[Any], sample_weight: NDArray[np.float64], eras: EncodedEras | None,
) -> Bunch:  # fmt: skip
    """Return the columns of `RuleEnsembleClassifier.rule_table`; `y` has indices of
    classes.
    """
    class_index = np.array([rule.class_index for rule in rules], dtype=np.intp)
    codes = np.zeros(y.size, np.intp) if eras is None else eras.codes.astype(np.intp)
    shape = 1 if eras is None else eras.labels.size, classes.size
    # Weights by era and class.
    cells = codes * classes.size + y

    def weigh(rows: Any) -> NDArray[Any]:
        n_cells = shape[0] * shape[1]
        return np.bincount(cells[rows], sample_weight[rows], n_cells).reshape(shape)

    totals = weigh(slice(None))
    by_rule = [weigh(rule.rule.covers(X_binned)) for rule in rules]
    covered = np.reshape(by_rule, (-1, *shape))
    table = Bunch(
        text=np.array([rule.text for rule in rules], dtype=object),
        class_label=classes[class_index],
        coefficient=np.array([rule.coefficient for rule in rules]),
        coverage=covered.sum(axis=(1, 2)) / totals.sum(),
    )
    of_class = np.arange(classes.size) == class_index[:, np.newaxis, np.newaxis]
    for name, which in (("tpr", of_class), ("fpr", ~of_class)):
        inside, among = (np.sum(w * which, axis=2) for w in (covered, totals))
        table[name] = _share(inside.sum(axis=1), among.sum(axis=1))
        if eras is not None:
            table[f"{name}_by_era"] = _share(inside, among)
    if eras is not None:
        table.era_labels = eras.labels
    return table


def _share(covered: Any, total: Any) -> Any:
    """Return the quotient, NaN without rows."""
    return np.divide(covered, total, out=np.full(total.shape, np.nan), where=total > 0)


def rates_frame(table: Bunch) -> Any:
    """Return the table as a data frame, with a column for each era's rates."""
    pandas = import_optional("pandas", extra="cli")
    names = ("text", "class_label", "coefficient", "coverage", "tpr", "fpr")
    columns = {name: table[name] for name in names}
    if "era_labels" in table:
        for name in ("tpr", "fpr"):
            for j, era in enumerate(label_texts(table.era_labels)):
                columns[f"{name} {era}"] = table[f"{name}_by_era"][:, j]
    return pandas.DataFrame(columns)
