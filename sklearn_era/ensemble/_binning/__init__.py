"""Binning: one byte for each value, by scikit-learn's thresholds.

- ``integers``: bins of small integers, by table; ``integer_columns``: their columns;
  ``integer_bins``: the loops over them;
- ``floats``: bins of any other X, some columns at a time, by ``float_bins``;
- ``rare_categories``: the bins of categories in scikit-learn's encoder;
  ``category_groups``: which categories share a bin, if a column has too many;
- ``thresholds``: the thresholds of a column of floats;
- ``dataset``: rows binned once, for many fits; ``parquet``: the same from files;
- ``hooks``: methods that scikit-learn's patched ``fit`` calls for bins;
- ``read_columns``: values of any type to numbers, with errors that name the column.
"""
