"""Define types of arguments, for annotations."""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any


class Table(Protocol):
    """Rows, as an array, as lists, or as a data frame of pandas, polars or PyArrow."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


class Estimator(Protocol):
    """An estimator that scikit-learn can clone and fit."""

    def fit(self, X: Any, y: Any, /) -> Any: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Any: ...


class Splitter(Protocol):
    """An object that yields the training rows and the test rows of each fold."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[Any]: ...
    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int: ...


# A label of each row, in one column or in several, or the names of columns of X.
Eras: TypeAlias = str | Sequence[Any] | Mapping[Any, Any] | Table
EraOrder: TypeAlias = str | Sequence[str]
# A number of eras, or a time span: "28D", "4 weeks".
Duration: TypeAlias = int | str | datetime.timedelta | np.timedelta64
# The names, indices or mask of columns, or "from_dtype".
ColumnChoice: TypeAlias = str | Sequence[Any] | NDArray[Any] | None
Folds: TypeAlias = int | Splitter | Iterable[tuple[Any, Any]] | None
Scoring: TypeAlias = str | Callable[..., Any] | None
Seed: TypeAlias = int | np.random.RandomState | None
