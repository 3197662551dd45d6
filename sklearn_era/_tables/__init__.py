"""Tables of any kind, read column by column."""
