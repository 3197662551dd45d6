"""Collect the patches, the source that they patch, and compiled code's imports."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_PATCHED = "sklearn.ensemble._hist_gradient_boosting"

datas = collect_data_files("sklearn_era")  # codespell:ignore datas
datas += collect_data_files(  # codespell:ignore datas
    _PATCHED, include_py_files=True, includes=["gradient_boosting.py"]
)
hiddenimports = [
    *collect_submodules("sklearn_era.ensemble"),
    f"{_PATCHED}.gradient_boosting",  # and so whatever the patched text imports
    "sklearn_era.ensemble._hist_gradient_boosting.patch_series",
]
