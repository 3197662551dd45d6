"""The rows of the README's table of speed and memory."""
