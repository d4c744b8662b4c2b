# SPDX-License-Identifier: Apache-2.0
"""Functions run in a process of their own, and the processor time that a call takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

THREADS = "OMP_NUM_THREADS"


def run_alone(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function in a fresh process."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(function, args, kwargs)


def run_single_threaded(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function in a fresh process that has one OpenMP thread.

    The number of threads is fixed when a process starts. With more than one, Eigen inside Crocoddyl spends
    its time on sharing out small products, and a backward pass takes many times as long.
    """
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        return run_alone(function, *args, **kwargs)
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


def processor_time(function: Callable[[], object]) -> float:
    """Time that this thread computes during the second of two calls [s]; other processes do not count.

    The first call brings into the cache what fits there: what was timed before leaves its own data in it.
    """
    function()
    start = time.thread_time()
    function()
    return time.thread_time() - start
