"""The parallel driver: one `prange` loop that runs the bins of any kernel side by side.

A loop of its own cost each kernel 3 of the 10 processor seconds of its compilation, since Numba hands the 60 arrays of
the arguments to the loop one by one. Here they wait on the stack of the caller, and the loop takes two addresses: that
of the kernel's code and that of the arguments.
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

__all__ = ["DRIVER", "bins_of", "run_side_by_side"]

BIN = (types.uint64, types.int64)  # where the arguments are, and which bin
DRIVER = (types.uint64, types.uint64, types.int64)  # where a kernel's code and its arguments are, and how many bins
ADDRESS = ir.IntType(64)


@intrinsic
def call(typing: Any, code: Any, arguments: Any) -> Any:
    """Call compiled code at an address, which returns nothing, with a tuple of arguments."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention, kinds = context.call_conv, signature.args[1].types
        function = builder.inttoptr(values[0], convention.get_function_type(types.none, kinds).as_pointer())
        unpacked = cgutils.unpack_tuple(builder, values[1])
        # a second copy of a kernel, put in place of the call, would be translated, too
        status, _ = convention.call_function(builder, function, types.none, kinds, unpacked, attrs=("noinline",))
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.uint64, arguments), build


@intrinsic
def address_of(typing: Any, arguments: Any) -> Any:
    """The address of a copy on the stack, which lasts as long as the function that asks."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once_value(builder, values[0]), ADDRESS)

    return types.uint64(arguments), build


def bins_of(kernel: Helper) -> Any:
    """Return the function `run_bins(driver, arguments, first, last)` of a kernel that takes arguments and a bin.

    It runs bins first..last-1, one after another or by the driver whose code is at an address, if that is not 0.
    """

    @functools.cache
    def bin_with(kept: Any) -> Any:
        """Return the function that runs a bin with the arguments at an address; they have the types `kept`."""

        @intrinsic
        def arguments_at(typing: Any, address: Any, at: Any) -> Any:
            all_of_them = types.Tuple((*kept.types, at))

            def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                pointer = builder.inttoptr(values[0], context.get_value_type(kept).as_pointer())
                found = cgutils.unpack_tuple(builder, builder.load(pointer))
                return context.make_tuple(builder, all_of_them, [*found, values[1]])

            return all_of_them(address, at), build

        def run_bin(address, at):
            kernel(*arguments_at(address, at))

        # symbols of one name are one function to the loader, also those of files that two processes wrote
        digest = hashlib.sha256(str(kept).encode()).hexdigest()
        run_bin.__qualname__ = f"run_bin_{kernel.name}_{digest}"
        return Helper(run_bin).dispatcher

    @intrinsic
    def code_with(typing: Any, arguments: Any) -> Any:
        """Address of the code that runs a bin with arguments of such types."""
        one = bin_with(arguments)
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
