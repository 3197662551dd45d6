"""Bin each value to one byte, by scikit-learn's thresholds.

- ``integers`` bins small integers by a table; ``integer_columns`` reads the columns of
  integers, and ``integer_bins`` loops over them;
- ``floats`` bins any other X, some columns at a time, by ``float_bins``;
- ``rare_categories`` keeps the bins of categories in scikit-learn's encoder;
  ``category_groups`` chooses the categories that share a bin if there are too many;
- ``thresholds`` finds the thresholds of a column of floats;
- ``dataset`` bins rows once, for many fits; ``parquet`` bins rows from files;
- ``hooks`` has the methods that scikit-learn's patched ``fit`` calls for bins;
- ``read_columns`` converts values of any type to numbers; its errors name the column.
"""
