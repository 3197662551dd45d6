"""Tables of any kind, read column by column.

- ``columns``: a column of a table in memory, as numbers or as categories;
- ``parquet``: columns of Parquet files, in batches;
- ``no_value``: the warning of columns that have none.
"""
