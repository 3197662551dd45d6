# The queue of nodes that wait to be split, a heap of their numbers: its i-th place is
# the field `waiting` of the i-th node.

from .nodes cimport grown_node
from .._criteria.criterion cimport split_rank


cdef enum:
    MAX_LOOKED_AT = 64  # places, for nodes that may be next


cdef inline bint is_before(
    const grown_node * nodes, int one, int other
) noexcept nogil:
    """Return whether node `one` is split before node `other`, by their priorities."""
    cdef:
        const split_rank * a = &nodes[one].choice.split.rank
        const split_rank * b = &nodes[other].choice.split.rank
    if a.priority != b.priority:
        return a.priority > b.priority
    if a.secondary != b.secondary:
        return a.secondary > b.secondary
    return a.gain > b.gain


cdef inline void move_up(grown_node * nodes, int number, int place) noexcept nogil:
    """Put node `number` into the heap, at the free `place` or at a place above it."""
    cdef int parent
    while place > 0:
        parent = (place - 1) // 2
        if not is_before(nodes, number, nodes[parent].waiting):
            break
        nodes[place].waiting = nodes[parent].waiting
        place = parent
    nodes[place].waiting = number


cdef inline void move_down(grown_node * nodes, int n_waiting, int place) noexcept nogil:
    """Move the node at `place` of the heap below all nodes that are split before it."""
    cdef:
        int number = nodes[place].waiting
        int child = 2 * place + 1
    while child < n_waiting:
        if child + 1 < n_waiting and is_before(
            nodes, nodes[child + 1].waiting, nodes[child].waiting
        ):
            child += 1
        if not is_before(nodes, nodes[child].waiting, number):
            break
        nodes[place].waiting = nodes[child].waiting
        place, child = child, 2 * child + 1
    nodes[place].waiting = number


cdef inline void push(
    grown_node * nodes, int * n_waiting, int number  # IN and OUT: n_waiting
) noexcept nogil:
    move_up(nodes, number, n_waiting[0])
    n_waiting[0] += 1


cdef inline int pop(grown_node * nodes, int * n_waiting) noexcept nogil:
    """Take the first node out of the heap; return its number. Take the steps of
    `heapq`, so that ties are decided as by scikit-learn's grower.
    """
    cdef:
        int first = nodes[0].waiting
        int n = n_waiting[0] - 1
        int place = 0, child = 1
    while child < n:
        if child + 1 < n and not is_before(
            nodes, nodes[child].waiting, nodes[child + 1].waiting
        ):
            child += 1
        nodes[place].waiting = nodes[child].waiting
        place, child = child, 2 * child + 1
    if n > 0:
        move_up(nodes, nodes[n].waiting, place)
    n_waiting[0] = n
    return first


cdef inline int take_next(
    const grown_node * nodes, int n_waiting,
    int * numbers,       # IN and OUT: of nodes; the first of the queue is the first
    int n,               # of these
    int most, bint are_deferred,
) noexcept nogil:
    """Append to `numbers` the nodes of the queue that come next, up to `most` nodes in
    all. If `are_deferred`, take nodes whose eras are still to be compared, else nodes
    to be split. Return the new length of `numbers`.
    """
    cdef int best, number, i
    while n < most:
        best = -1
        for i in range(1, min(n_waiting, <int> MAX_LOOKED_AT)):
            number = nodes[i].waiting
            if (
                nodes[number].is_split
                or nodes[number].choice.is_deferred != are_deferred
                or (n > 1 and not is_before(nodes, numbers[n - 1], number))
            ):
                continue
            if best < 0 or is_before(nodes, number, best):
                best = number
        if best < 0:
            break
        numbers[n] = best
        n += 1
    return n
