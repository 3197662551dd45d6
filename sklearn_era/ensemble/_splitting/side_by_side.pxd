# Searches of several nodes at once; each thread searches one node after another.
#
# Without the GIL a variable cannot refer to one search of the list after another:
# functions call themselves with the next one.

from cython.parallel cimport parallel

from .._arrays cimport omp_get_num_threads, omp_get_thread_num

from .candidates.splits cimport (
    THREADS, first_of, stop_of, take_next, thread_team, wait_for_team,
)
from .node_search cimport search_child
from .node_sums cimport add_sums, begin_sums
from .splitter_state cimport NodeSearch, SplitterState


cdef inline void search_side_by_side(
    SplitterState self,
    int n,                  # nodes to search
    int n_parents,          # whose children these are, to be summed up; or 0
    int n_threads,
) noexcept:
    """Search the nodes that the list of searches has, the children after their sums."""
    self.n_to_search = n
    self.n_taken = 0
    self.splits.n_taken[THREADS] += n_threads > 1
    with nogil:
        if n_threads == 1:
            search_some(self, self.search, n_parents, thread_team(0, 1), 0)
        else:
            with parallel(num_threads=n_threads):
                search_some(
                    self, self.search, n_parents,
                    thread_team(omp_get_thread_num(), omp_get_num_threads()),
                    omp_get_thread_num(),
                )


cdef inline void search_some(
    SplitterState self, NodeSearch own, int n_parents, thread_team team,
    int place,              # of the thread's own search, in the list from `own`
) noexcept nogil:
    """Sum up the children of nodes; then search children until none is left."""
    cdef int n = self.n_to_search - n_parents
    cdef int i
    if place > 0:
        search_some(self, own.next, n_parents, team, place - 1)
        return
    if n_parents == 1 or self.shares_sums:
        for i in range(n_parents):
            sum_place(self, self.search, i, team)
    else:
        for i in range(first_of(team, n_parents), stop_of(team, n_parents)):
            sum_place(self, self.search, i, thread_team(0, 1))
    if n_parents > 0:
        wait_for_team(team)
    i = take_next(&self.n_taken)
    while i < self.n_to_search:  # the larger child of each node, then the smaller ones
        search_place(self, own, self.search, i % n, i < n)
        i = take_next(&self.n_taken)


cdef inline void sum_place(
    SplitterState self, NodeSearch search, int place, thread_team team
) noexcept nogil:
    """Sum up the children of the node with the search at `place` of the list."""
    if place > 0:
        sum_place(self, search.next, place - 1, team)
        return
    if team.rank == 0:
        search.rows.start_node(
            &self.partition[0] + search.smaller.node.start, search.smaller.n_rows
        )
        begin_sums(self, search, search.of_smaller, search.of_larger)
        search.of_larger.n_rows = search.larger.n_rows
    wait_for_team(team)
    add_sums(self, search, search.of_smaller, search.of_larger, team)


cdef inline void search_place(
    SplitterState self, NodeSearch own, NodeSearch search, int place, bint is_larger
) noexcept nogil:
    """Search a child of the node at `place` of the list, by a thread's `own` search."""
    if place > 0:
        search_place(self, own, search.next, place - 1, is_larger)
    elif is_larger:
        search_child(
            self, own, search.larger, search.of_larger, &search.is_active[0]
        )
    else:
        search_child(
            self, own, search.smaller, search.of_smaller, &search.is_active[0]
        )
