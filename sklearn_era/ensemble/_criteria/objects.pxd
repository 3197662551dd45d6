from .criterion cimport criterion_struct


cdef class Criterion:
    cdef criterion_struct params
