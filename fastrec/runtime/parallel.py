"""The parallel driver: one `prange` loop that runs the bins of any kernel side by side.

A loop in each kernel took 3 of the 10 processor seconds of its compilation, since Numba passes the 60 arrays of the
arguments to the loop one by one. This loop takes two addresses: that of the kernel's code, and that of the arguments
on the caller's stack.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from fastrec.runtime.compiler import Helper

__all__ = ["DRIVER", "bin_runner", "run_side_by_side"]

BIN = (types.uint64, types.int64)  # address of the arguments, number of the bin
DRIVER = (types.uint64, types.uint64, types.int64)  # addresses of a kernel's code and of the arguments, number of bins
ADDRESS = ir.IntType(64)


@intrinsic
def call(typing: Any, code: Any, arguments: Any) -> Any:
    """Call compiled code at an address with a tuple of arguments; it returns nothing."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention, kinds = context.call_conv, signature.args[1].types
        function = builder.inttoptr(values[0], convention.get_function_type(types.none, kinds).as_pointer())
        unpacked = cgutils.unpack_tuple(builder, values[1])
        # inlined, a second copy of the kernel would be translated, too
        status, _ = convention.call_function(builder, function, types.none, kinds, unpacked, attrs=("noinline",))
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.uint64, arguments), build


@intrinsic
def address_of(typing: Any, arguments: Any) -> Any:
    """Return the address of a copy of arguments on the stack, which lasts until the caller returns."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once_value(builder, values[0]), ADDRESS)

    return types.uint64(arguments), build


def bin_runner(kernel: Helper) -> Any:
    """Return the function `run_bins(driver, arguments, first, last)` of a kernel that takes arguments and a bin.

    The parallel driver at the address `driver` runs bins 0..last-1. Without one (0), first..last-1 run in order.
    """

    @functools.cache
    def runner_of_one(stored: Any) -> Any:
        """Return the dispatcher of a function that runs a bin with arguments of the types `stored` at an address."""

        @intrinsic
        def arguments_at(typing: Any, address: Any, at: Any) -> Any:
            passed = types.Tuple((*stored.types, at))

            def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                pointer = builder.inttoptr(values[0], context.get_value_type(stored).as_pointer())
                found = cgutils.unpack_tuple(builder, builder.load(pointer))
                return context.make_tuple(builder, passed, [*found, values[1]])

            return passed(address, at), build

        def run_bin(address, at):
            kernel(*arguments_at(address, at))

        # the loader takes symbols of one name for one function, also in files that two processes wrote
        digest = hashlib.sha256(str(stored).encode()).hexdigest()
        run_bin.__qualname__ = f"run_bin_{kernel.name}_{digest}"
        return Helper(run_bin).dispatcher

    @intrinsic
    def code_with(typing: Any, arguments: Any) -> Any:
        """Return the address of the code that runs a bin with arguments of these types."""
        one = runner_of_one(arguments)
        one.compile(BIN)

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compiled = one.overloads[BIN]
            context.active_code_library.add_linking_library(compiled.library)
            return builder.ptrtoint(context.declare_function(builder.module, compiled.fndesc), ADDRESS)

        return types.uint64(arguments), build

    def run_bins(driver, arguments, first, last):
        address, code = address_of(arguments), code_with(arguments)
        if driver != 0:
            call(driver, (code, address, last))
        else:
            for at in range(first, last):
                call(code, (address, at))

    run_bins.__qualname__ = f"run_bins_{kernel.name}"
    return run_bins


def run_side_by_side(code, address, n_bins):
    """Run bins 0..n_bins-1 of the kernel whose code is at an address."""
    for at in prange(n_bins):
        call(code, (address, np.int64(at)))
