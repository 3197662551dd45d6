"""Find the candidate splits of a node, and the best of them.

- ``splits``: all candidates of one node after another, and their sums over processes;
- ``orders``: the orders in which bins, categories and missing values move to the left
  side;
- ``listing``: the candidates compared by era, pruned as eras are added;
- ``best``: the best split of a feature and of the node.
"""
