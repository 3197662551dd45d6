"""Rows become bins: one byte a value, with scikit-learn's thresholds.

- ``integers``: small integers are binned by table; ``integer_columns`` are X as such
  columns, and ``codes`` has the loops over them;
- ``floats``: any other X, some columns at a time, by ``search``;
- ``rare_categories``: those that share a bin where a column has more than bins;
- ``thresholds``: those of a column of floats;
- ``dataset``: rows that are binned once, for many fits; ``parquet`` makes it of files;
- ``hooks``: where the patched ``fit`` of scikit-learn asks for bins;
- ``errors``: what is wrong with the values of X, and in which column.
"""
