"""The candidate splits of a node, and the best of them."""
