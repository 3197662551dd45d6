"""A stand-in for Numerai, its files, and runs of the program against it."""
