"""The papers' tables, measured again: ``python -m experiments list`` names them."""
