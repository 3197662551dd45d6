"""Load the hourly rentals of bicycles in Washington, D.C., whose level drifts."""

import csv
import gzip
from importlib.resources import files
from io import TextIOWrapper

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import validate_params

from sklearn_era._optional import import_optional

_FEATURES = (
    "hour", "weekday", "holiday", "workingday", "season", "weather", "temperature",
    "humidity", "windspeed",
)  # fmt: skip


@validate_params({"as_frame": ["boolean"]}, prefer_skip_nested_validation=True)
def load_bike_sharing(*, as_frame: bool = False) -> Bunch:
    """Load the numbers of bicycles rented in each hour of 2011 and 2012.

    The bicycle sharing system of Washington, D.C., grew: the same hour and weather have
    higher counts a year later. The 24 months are the eras. Rows are in the order of
    time, and hours without rentals are absent.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether to return pandas objects.

    Returns
    -------
    bikes : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes:

        data, feature_names : ndarray or DataFrame of shape (17379, 9); list of str
            ``hour`` (0 to 23), ``weekday`` (0 is Sunday), ``holiday`` and
            ``workingday`` (0 or 1), ``season`` (1 to 4, 1 is winter), ``weather`` (from
            1, clear, to 4, heavy rain or snow), and ``temperature``, ``humidity`` and
            ``windspeed``, scaled to between 0 and 1; and the names of the columns.
        target, eras, dates : ndarray or Series of shape (17379,)
            Counts of rented bicycles, 1 to 977, float64; months as text such as
            ``"2011-01"``; and days, datetime64.
        frame : DataFrame of shape (17379, 12)
            All columns, with ``date``, ``month`` and ``count``, if ``as_frame=True``.

    Raises
    ------
    ImportError
        If `as_frame` is True and pandas is not installed.

    References
    ----------
    H. Fanaee-T, J. Gama (2014), *Event labeling combining ensemble detectors and
    background knowledge*, Progress in Artificial Intelligence 2; data by H. Fanaee-T,
    *Bike Sharing*, UCI Machine Learning Repository, https://doi.org/10.24432/C5W894,
    under the licence CC BY 4.0. Columns were renamed, and derived ones left out.

    Examples
    --------
    >>> from sklearn_era.datasets import load_bike_sharing
    >>> bikes = load_bike_sharing()
    >>> bikes.data.shape, str(bikes.eras[0]), bikes.target[:3].tolist()
    ((17379, 9), '2011-01', [16.0, 40.0, 32.0])
    """
    path = files("sklearn_era.datasets") / "data" / "bike_sharing.csv.gz"
    with path.open("rb") as file, gzip.open(file) as content:
        _, *rows = csv.reader(TextIOWrapper(content, encoding="ascii"))
    dates, *columns = zip(*rows, strict=True)
    numbers = np.array(columns, dtype=np.float64).T
    days = np.array(dates, dtype="datetime64[D]")
    bikes = Bunch(
        data=numbers[:, :-1], target=numbers[:, -1], dates=days,
        eras=days.astype("datetime64[M]").astype(str), feature_names=list(_FEATURES),
    )  # fmt: skip
    if as_frame:
        pandas = import_optional("pandas", extra="cli")
        frame = pandas.DataFrame({"date": days, "month": bikes.eras})
        frame[bikes.feature_names] = bikes.data
        frame["count"] = bikes.target
        bikes.update(
            data=frame[bikes.feature_names], target=frame["count"], frame=frame,
            eras=frame["month"], dates=frame["date"],
        )  # fmt: skip
    return bikes
