"""The candidate splits of a node, and the best of them.

- ``splits``: all of them, of one node after another, and those of other processes;
- ``orders``: in which bins or categories move to the left side;
- ``listing``: the splits that the eras are asked of, until they cannot be the best one;
- ``best``: the best split of a feature.
"""
