from .split cimport feature_split
from ..lanes.functions cimport node_struct
from ..tree_data cimport tree_data, tree_limits


cdef make_split_info(
    const tree_data * tree,
    const tree_limits * limits,
    const feature_split * split,
    const node_struct * node,
)
