"""Data, estimators and comparisons that tests of several subjects share."""
