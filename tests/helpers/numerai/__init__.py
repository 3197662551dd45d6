"""A stand-in for Numerai, its files, and runs of the program against it."""

import pytest


def refusal(error, call, *arguments, **options):
    """Call, which fails with an error of one line; return that line."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message
