"""Run the command line program, as ``python -m sklearn_era``."""

from sklearn_era.cli import main

if __name__ == "__main__":
    main()
