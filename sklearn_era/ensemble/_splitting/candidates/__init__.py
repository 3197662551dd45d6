"""The candidate splits of a node, and the best of them.

- ``splits``: all of them, of one node after another, and those of other processes;
- ``orders``: in which bins move to the left side; ``categories``: of categories;
- ``listing``: the splits that the eras are asked of;
- ``pruning``: drops those that cannot become the best one;
- ``best``: the best split of a feature;
- ``split``: one of them; ``split_info``: the best one, for scikit-learn's grower.
"""
