"""The best split of a node over all features.

- ``splitter``: what scikit-learn's grower asks for a split, and what a node keeps;
- ``rows``: a node's rows era by era, as words to add up;
- ``fixed_points``: integers in place of gradients and hessians;
- ``bundles``: features of few bins that are summed up jointly;
- ``nodes``: the tree as scikit-learn's splitter has it, a node, and what a split gains;
- ``histograms``: a node's sums by bin, over all eras, and those by era that it keeps;
  ``store``: the memory of both;
- ``candidates``: the splits that a node may have, and the best of them;
- ``comparison``: their sums over eras; ``choice``: which of them it shall be;
- ``lanes``: the loops over splits, compiled for several instruction sets;
- ``sorted_rows``: small nodes of forests, by their rows in order.
"""
