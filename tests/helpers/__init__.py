"""Data, estimators and comparisons that tests of several subjects share."""

import tracemalloc


def peak_memory(function, *arguments, **keywords):
    """What a function returns, and the most bytes that were allocated on the way."""
    tracemalloc.start()
    result = function(*arguments, **keywords)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak
