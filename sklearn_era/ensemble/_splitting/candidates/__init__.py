"""The candidate splits of a node, and the best of them.

- ``table``: the candidates, bundle by bundle, and what the eras say of them;
- ``categories``: the order in which they take categories;
- ``admission``: which of them a node may have, and what they gain;
- ``best_split``: ranks them;
- ``split_info``: tells scikit-learn's grower of the best one.
"""
