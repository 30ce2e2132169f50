"""Seconds of calls, for the scripts beside it."""

import statistics
import time


def times(work, repetitions):
    """Seconds of so many calls, one after another."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found


def median(work, repetitions=3):
    """The median after one call to warm up."""
    work()
    return statistics.median(times(work, repetitions))


def best(work, repetitions):
    """The smallest: everything else that runs on a machine only adds."""
    return min(times(work, repetitions))
