"""Find the differences in settings and data that would change the trees if a trained
fit were trained again with the present configuration.
"""

import re
from typing import Any

from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.numerai.store import ModelRecord

_FREE_PARAMETERS = ("n_jobs", "warm_start", "verbose")  # without influence on trees
# Fields of the request, and of the rows that the files had.
_ASKED = {"target", "version", "every_nth_era", "era_offset", "era_groups"}
_ASKED |= {"estimator", "time_budget", "purge_of_folds"}
_FOUND = {"first_era", "last_era", "n_eras", "n_rows"}


def differences(was: ModelRecord, now: ModelRecord) -> list[str]:
    """Return a text for each difference in settings or data that changes the trees."""
    # Rows are compared if the data of both were read, else the requests.
    both_read = bool(was.data_fingerprint and now.data_fingerprint)
    old, new = _traits(was, both_read), _traits(now, both_read)
    if was.features != now.features:
        old["feature_set"], new["feature_set"] = was.feature_set, now.feature_set
    changed = [name for name in old | new if old.get(name) != new.get(name)]
    found = [f"{x} changed from {old.get(x)!r} to {new.get(x)!r}" for x in changed]
    if was.features != now.features and was.feature_set == now.feature_set:
        before, after = {*was.features}, {*now.features}
        counts = ((before - after, "removed"), (after - before, "added"))
        changes = [f"{len(x)} {how} (first: {min(x)})" for x, how in counts if x]
        text = ", ".join(changes) or "their order differs"
        found.append(f"features changed: {text}")
    if both_read and not found and was.data_fingerprint != now.data_fingerprint:
        found.append("the values in these rows changed")
    if not both_read and was.source != now.source:
        found.append("its files, or the rows of the model, may have changed")
    return found


def _traits(record: ModelRecord, is_read: bool) -> dict[str, Any]:
    """Return a dict of the settings that determine trees. It has counts of rows and
    eras if the data were read (`is_read`), or else the requested eras and files.
    """
    # Parameters that were not set have their defaults.
    default = Regressor(early_stopping=False, random_state=record.random_state)
    parameters = default.get_params() | record.parameters
    traits = {k: v for k, v in parameters.items() if k not in _FREE_PARAMETERS}
    traits |= record.model_dump(include=_ASKED | (_FOUND if is_read else set()))
    if not is_read:
        first, last = (bound or "" for bound in record.era_bounds)
        # Without the round of their download, and in any order.
        files = sorted(re.sub(r"(_\d+)?\.parquet$", "", file) for file in record.files)
        traits |= {"first_era": first, "last_era": last, "files": files}
    return traits
