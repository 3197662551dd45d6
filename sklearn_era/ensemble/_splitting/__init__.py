"""The best split of a node over all features.

- ``splitter_choice``: which splitter a fit takes, and with what;
- ``splitter``: what scikit-learn's grower asks for a split, and what a node keeps;
- ``rows``: a node's rows era by era, as words to add up;
- ``bundles``: features of few bins that are summed up jointly;
- ``candidates``: the candidate splits of a node, and what the eras say of them;
  ``admission``: which of them a node may have, and what they gain; ``categories``: the
  order in which they take categories; ``best_split``: ranks them;
- ``tree_data``: the arrays and limits of the tree, as scikit-learn's splitter has them;
- ``costs``: which of two ways to the same sums is cheaper;
- ``histograms``: large nodes, by sums over bins; ``lanes``: their loops, eight eras at
  a time; ``sorted_rows``: small nodes, by their rows in order.
"""
