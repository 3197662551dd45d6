"""The weekly submission to Numerai's tournament, from download to record.

The command line program ``sklearn-era numerai`` does it all; see ``docs/numerai.md``.
Its steps can be called as well, each a package of its own, in the order of the work:

- ``api`` and ``data``: the files, downloaded and checked;
- ``training``: the model, with checkpoints;
- ``metrics`` and ``validation``: its scores era by era, and the report;
- ``submission``: live predictions, checked, uploaded and confirmed;
- ``model_upload``: the model as a file that Numerai runs.

``config`` is the configuration file, ``workspace`` the folders beside it, and ``steps``
puts them together; ``state`` is what of a week is done already. ``errors``, ``files``
and ``targets`` are what they share, and ``demo`` makes files as Numerai's.
:mod:`sklearn_era.numerai.metrics` needs nothing but NumPy and SciPy; for the rest,
install ``sklearn-era[numerai]``.
"""
