"""Read tables of any kind, column by column.

- ``checks``: names of columns; refusals of lazy frames, masks, series and dicts;
- ``columns``: columns of a table in memory, as numbers or as categories;
- ``target``: the values of a target;
- ``parquet``: columns of Parquet files, in batches;
- ``no_value``: the warning about columns without a value.
"""
