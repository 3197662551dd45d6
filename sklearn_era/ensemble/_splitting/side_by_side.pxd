# Searches of several nodes at once; each thread searches one node after another, and
# helps other threads where there is none left.
#
# Without the GIL a variable cannot refer to one search of the list after another:
# functions call themselves with the next one.

from cython.parallel cimport parallel

from .._arrays cimport omp_get_num_threads, omp_get_thread_num

from .candidates.splits cimport THREADS
from .lanes.functions cimport era_batch
from .node_search cimport search_child
from .node_sums cimport add_sums, begin_sums
from .partition cimport part_rows
from .splitter_state cimport NodeSearch, SplitterState
from .threads cimport (
    count_one, counter, pause, read_count, set_count, thread_team, wait_for_team,
)
from .visits cimport compare_next


cdef inline void search_side_by_side(
    SplitterState self,
    int n,                  # searches of the list that have a node, or its children
    bint are_children,      # still to be summed up
    int n_threads,
) noexcept:
    """Find the splits of the nodes in the first `n` searches. If `are_children`, sum up
    the children of these nodes, and find the splits of the children instead.
    """
    set_count(&self.n_done, 0)
    self.splits.n_taken[THREADS] += n_threads > 1
    with nogil:
        if n_threads == 1:
            search_some(self, self.search, n, are_children, thread_team(0, 1), 0)
        else:
            with parallel(num_threads=n_threads):
                search_some(
                    self, self.search, n, are_children,
                    thread_team(omp_get_thread_num(), omp_get_num_threads()),
                    omp_get_thread_num(),
                )


cdef inline void search_some(
    SplitterState self, NodeSearch own, int n, bint are_children, thread_team team,
    int place,              # of the thread's own search, in the list from `own`
) noexcept nogil:
    """Sum up and search nodes until all are claimed; then help other threads."""
    cdef:
        bint shares_sums = are_children and self.shares_sums
        int n_to_search = 2 * n if are_children else n
        int idle = 0
    if place > 0:
        search_some(self, own.next, n, are_children, team, place - 1)
        return
    if shares_sums:
        sum_all(self, self.search, n, team)
        wait_for_team(team)
    search_unclaimed(
        self, own, self.search, n, are_children, are_children and not shares_sums
    )
    while idle <= self.patience and read_count(&self.n_done) < n_to_search:
        pause(idle)
        idle = 0 if help(self, own, self.search, max(n, team.size)) else idle + 1


cdef inline void sum_all(
    SplitterState self, NodeSearch search, int n, thread_team team
) noexcept nogil:
    """Sum up the children of `n` nodes, one node after another, by all threads."""
    if n > 0:
        sum_children(self, search, search, team)
        sum_all(self, search.next, n - 1, team)


cdef inline void search_unclaimed(
    SplitterState self, NodeSearch own, NodeSearch search,
    int n,                  # from `search` on, in the list
    bint are_children, bint sums_up,
) noexcept nogil:
    """Claim the nodes that no other thread has claimed, one by one. Search each node
    or, if `are_children`, its children. If `sums_up`, first part and sum up the rows.
    """
    cdef int n_left
    if n == 0:
        return
    if count_one(&search.n_claims) == 0:
        if sums_up:
            n_left = part_rows(
                &self.tree, search.parent, &self.partition[0], &self.scratch[0], 1
            )
            assert n_left in (search.smaller.n_rows, search.larger.n_rows), "rows"
            sum_children(self, own, search, thread_team(0, 1))
        if are_children:
            set_count(&search.next_child, 0)  # for all threads
        search_next(self, own, search)
    search_unclaimed(self, own, search.next, n - 1, are_children, sums_up)


cdef inline void sum_children(
    SplitterState self,
    NodeSearch memory,      # of the calling thread, or of all
    NodeSearch search, thread_team team
) noexcept nogil:
    """Sum up a node's smaller child; change the node's sums to the larger child's."""
    if team.rank == 0:
        memory.rows.start_node(
            &self.partition[0] + search.smaller.node.start, search.smaller.n_rows
        )
        begin_sums(self, memory, search.of_smaller, search.of_larger)
        search.of_larger.n_rows = search.larger.n_rows
    wait_for_team(team)
    add_sums(self, memory, search.of_smaller, search.of_larger, team)


cdef inline bint search_next(
    SplitterState self, NodeSearch own, NodeSearch search
) noexcept nogil:
    """Search the children in `search`, with a thread's `own` memory, until both are
    taken; return whether there was a child left to take.
    """
    cdef:
        bint were_any = False
        counter child = read_count(&search.next_child)
    while child < 2:
        child = count_one(&search.next_child)
        if child >= 2:
            break
        were_any = True
        if child == 0:
            search_child(
                self, own, search.larger, search.of_larger, &search.is_active[0],
                search.defers,
            )
        else:
            search_child(
                self, own, search.smaller, search.of_smaller, &search.is_active[0],
                search.defers,
            )
        count_one(&self.n_done)
    return were_any


cdef inline bint help(
    SplitterState self, NodeSearch own, NodeSearch search, int n
) noexcept nogil:
    """Search the children and compare the columns that are left in `n` searches; return
    whether there was any child or column.
    """
    cdef bint were_any
    if n == 0:
        return False
    were_any = search_next(self, own, search)
    were_any |= compare_next(search.splits, <era_batch *> own.splits.batches)
    return help(self, own, search.next, n - 1) or were_any
