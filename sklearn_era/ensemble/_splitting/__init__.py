"""Find the best split of a node over all features.

- ``tree_grower``: a tree, node by node, in scikit-learn's order; ``node_queue``: nodes
  that wait to be split; ``node_features``: features that a node may use; ``partition``:
  a node's rows; ``grown_tree``: all nodes so far; ``records``: the nodes as arrays of
  scikit-learn's predictor;
- ``symmetric``: a tree whose nodes of a level share a split, without eras;
- ``splitter``: the steps of finding a split; ``splitter_state``: the state of searches;
  ``node_sums``: the sums of a node; ``node_search``: the search of one node;
  ``side_by_side``: searches of several nodes at once;
- ``rows``: a node's rows era by era, packed into words;
- ``fixed_points``: integers in place of gradients and hessians;
- ``bundles``: features of few bins that are summed up jointly;
- ``nodes``: a tree's data and limits, a node, and the pooled gain of a split;
  ``monotonic``: the rules of monotonic constraints; ``ties``: the better of two splits;
- ``histograms``: a node's sums by bin, pooled, and the sums by era that it keeps;
  ``store``: the memory of both kinds of sums;
- ``candidates``: the splits that a node may have, and the best of them;
- ``choice``: the choice among candidates; ``visits``: the candidates' sums over eras;
- ``threads``: how threads share these steps;
- ``lanes``: loops over splits, compiled for several instruction sets;
- ``sorted_rows``: small nodes of forests, by their rows in sorted order.
"""
