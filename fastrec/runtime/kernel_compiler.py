"""Numba's compiler with other last steps for kernels: it returns an object file and loads nothing.

The object file has one function that Python calls, with the slots of `fastrec.runtime.values`. It needs nothing of
Numba: the functions of Numba's library that kernels use are compiled into it. All of this uses private parts of Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.runtime import nrtdynmod
from numba.core.typed_passes import IRLegalization, NativeLowering
from numba.core.typing.typeof import Purpose, typeof
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from fastrec.runtime.loaded_code import ENTRY, OTHER_TYPES, Code
from fastrec.runtime.values import CONTIGUOUS, HEAD, WORDS, WRITEABLE

__all__ = ["compile_kernel"]

INT, WORD = ir.IntType(32), ir.IntType(64)
SLOT = 8  # bytes
MEMORY = "{i64, i8*, i8*, i8*, i64}"  # of an array: references, the function that frees it and its argument, data, size
# Numba's library, as far as kernels use it. The first five fields above are followed by one for foreign memory.
LIBRARY = """
declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare double @frexp(double, ptr)
declare double @ldexp(double, i32)
declare double @llvm.fabs.f64(double)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment) {
  %aligned = zext i32 %alignment to i64
  %head = add i64 %aligned, 48
  %whole = add i64 %head, %size
  %made = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %end, label %fill
fill:
  store i64 1, ptr %made
  %others = getelementptr i64, ptr %made, i64 1
  store i64 0, ptr %others
  %argument = getelementptr i64, ptr %made, i64 2
  store i64 0, ptr %argument
  %address = ptrtoint ptr %made to i64
  %last = add i64 %address, %head
  %beyond = urem i64 %last, %aligned
  %first = sub i64 %last, %beyond
  %data = getelementptr i64, ptr %made, i64 3
  store i64 %first, ptr %data
  %length = getelementptr i64, ptr %made, i64 4
  store i64 %size, ptr %length
  br label %end
end:
  ret ptr %made
}

define void @NRT_MemInfo_call_dtor(ptr %made) {
  call void @free(ptr %made)
  ret void
}

define double @numba_ldexp(double %number, i32 %exponent) {
  %found = call double @ldexp(double %number, i32 %exponent)
  ret double %found
}

define double @numba_frexp(double %number, ptr %exponent) {
  %size = call double @llvm.fabs.f64(double %number)
  %finite = fcmp olt double %size, 0x7FF0000000000000
  %positive = fcmp ogt double %size, 0.0
  %usual = and i1 %finite, %positive
  br i1 %usual, label %split, label %whole
split:
  %found = call double @frexp(double %number, ptr %exponent)
  ret double %found
whole:
  store i32 0, ptr %exponent
  ret double %number
}
"""


def compile_kernel(function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any) -> Code:
    """Compile a function for arguments of these types."""
    kinds = tuple(typeof(argument, Purpose.argument) for argument in arguments)
    dispatcher = njit(**options, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler)(
        function
    )
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    found = compiled.signature.return_type
    is_tuple = isinstance(found, types.BaseTuple)
    numbers = () if isinstance(found, types.NoneType) else found.types if is_tuple else (found,)
    leaves = list(_leaves(kinds))
    return Code(
        machine=compiled.library.object_file(),
        slots=[_slot(leaf) for leaf in leaves],
        dtypes=_dtypes(leaves),
        results=[_format(own) for own in numbers],
        is_tuple=is_tuple,
    )


def _leaves(kinds: Any) -> Iterator[Any]:
    """Yield the types of arguments without the tuples around them."""
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from _leaves(kind.types)
        else:
            yield kind


def _slot(leaf: Any) -> str:
    return "array" if isinstance(leaf, types.Array) else "none" if isinstance(leaf, types.NoneType) else _format(leaf)


def _format(number: Any) -> str:
    """Return the format of `struct` for a number of this type in a slot."""
    if isinstance(number, types.Boolean):
        return "?7x"
    if isinstance(number, types.Integer):
        return "q" if number.signed else "Q"
    if isinstance(number, types.Float):
        return "d" if number.bitwidth == WORD.width else "f4x"
    raise NotImplementedError(f"kernels neither take nor return {number}")


def _dtypes(leaves: list[Any]) -> list[str]:
    """Return the dtypes of arrays, each once."""
    return list(dict.fromkeys(as_dtype(leaf.dtype).str for leaf in leaves if isinstance(leaf, types.Array)))


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc] # Numba has no types
    """The code of a kernel and of everything that it calls, which becomes one object file."""

    def _optimize_final_module(self) -> None:
        """Add Numba's library, and optimise as Numba does, with nothing to keep but the entry."""
        whole = self._final_module
        library = binding.parse_assembly(LIBRARY)
        library.triple, library.data_layout = whole.triple, whole.data_layout
        whole.link_in(library)
        for function in whole.functions:
            if not function.is_declaration and function.name != ENTRY:
                function.linkage = "internal"
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def object_file(self) -> bytes:
        """Return the machine code."""
        if self.has_dynamic_globals:
            raise NotImplementedError("the code has addresses of this process")
        code: bytes = self._codegen._tm.emit_object(self._final_module)  # noqa: SLF001
        return code


@register_pass(mutates_CFG=False, analysis_only=False)
class _CollectCode(LoweringPass):  # type: ignore[misc]
    """Put the code into a library of ours."""

    _name = "fastrec_before_lowering_of_kernel"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        if str(nrtdynmod._meminfo_struct_type) != MEMORY:  # noqa: SLF001
            raise NotImplementedError("arrays that kernels make have another form than LIBRARY gives them")
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _AddEntry(LoweringPass):  # type: ignore[misc]
    """Add the entry, and optimise."""

    _name = "fastrec_after_lowering_of_kernel"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library.add_ir_module(_Entry(state.targetctx, state.cr.fndesc).module)
        state.library.finalize()
        state.cr = state.cr._replace(cfunc=[].append)  # a builtin that nothing calls, where Numba wants one
        return True


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's steps with one of ours before and one after lowering."""

    def define_pipelines(self) -> list[Any]:
        """Return the one pipeline, in nopython mode."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_CollectCode, IRLegalization)
        manager.add_pass_after(_AddEntry, NativeLowering)
        manager.finalize()
        return [manager]


class _Entry:
    """The function that Python calls: it reads slots, calls the kernel and writes results, or a failure, to a room."""

    def __init__(self, context: Any, kernel: Any) -> None:
        self._context = context
        self._leaves = list(_leaves(kernel.argtypes))
        self._dtypes = _dtypes(self._leaves)
        self.module = context.create_module(ENTRY)
        pointer = WORD.as_pointer()
        function = ir.Function(self.module, ir.FunctionType(INT, [pointer, pointer]), ENTRY)
        self._builder = ir.IRBuilder(function.append_basic_block())
        self._slots, self._room = function.args
        self._return_misfit()
        self._call(kernel)

    def _return_misfit(self) -> None:
        """Return unless all arrays have the types that the kernel was compiled for."""
        builder, fits = self._builder, ir.Constant(ir.IntType(1), 1)
        for at, leaf in enumerate(self._leaves):
            if isinstance(leaf, types.Array):
                mask = WRITEABLE | CONTIGUOUS["C"] | (0 if leaf.layout == "C" else CONTIGUOUS["F"])
                flags = CONTIGUOUS[leaf.layout] | WRITEABLE * leaf.mutable
                dtype = len(self._leaves) + self._dtypes.index(as_dtype(leaf.dtype).str)
                for found, wanted in (
                    (self._word(at, "ndim", INT), INT(leaf.ndim)),
                    (builder.and_(self._word(at, "flags", INT), INT(mask)), INT(flags)),
                    (self._word(at, "dtype", WORD), self._slot(dtype, WORD)),
                ):
                    fits = builder.and_(fits, builder.icmp_signed("==", found, wanted))
        with cgutils.if_unlikely(builder, builder.not_(fits)):
            builder.ret(INT(OTHER_TYPES))

    def _call(self, kernel: Any) -> None:
        """Call the kernel, and write what it returns or raises."""
        builder, convention = self._builder, self._context.call_conv
        kind = convention.get_function_type(kernel.restype, kernel.argtypes)
        function = ir.Function(self.module, kind, kernel.llvm_func_name)
        positions = iter(range(len(self._leaves)))
        values = [self._value(argument, positions) for argument in kernel.argtypes]
        status, result = convention.call_function(builder, function, kernel.restype, kernel.argtypes, values)
        with cgutils.if_unlikely(builder, status.is_error):
            builder.store(builder.ptrtoint(status.excinfoptr, WORD), self._room)
            builder.ret(status.code)
        found = kernel.restype
        if isinstance(found, types.BaseTuple):
            for at, (own, value) in enumerate(zip(found.types, cgutils.unpack_tuple(builder, result), strict=True)):
                self._write(at, own, value)
        elif not isinstance(found, types.NoneType):
            self._write(0, found, result)
        builder.ret(status.code)

    def _slot(self, at: int, kind: Any) -> Any:
        """Load a slot."""
        place = self._builder.gep(self._slots, [WORD(at)])
        return self._builder.load(self._builder.bitcast(place, kind.as_pointer()))

    def _word(self, at: int, name: str, kind: Any) -> Any:
        """Load a word of the array in a slot."""
        address = self._builder.add(self._slot(at, WORD), WORD(HEAD + SLOT * WORDS.index(name)))
        return self._builder.load(self._builder.inttoptr(address, kind.as_pointer()))

    def _value(self, kind: Any, positions: Iterator[int]) -> Any:
        """Return an argument, of which the parts are in the next slots."""
        context, builder = self._context, self._builder
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, [self._value(own, positions) for own in kind.types])
        at = next(positions)
        if isinstance(kind, types.NoneType):
            return context.get_dummy_value()
        if isinstance(kind, types.Array):
            return self._array(at, kind)
        wanted = context.get_value_type(kind)
        if isinstance(kind, types.Float):
            return self._slot(at, wanted)
        number = self._slot(at, WORD)
        return number if wanted.width == WORD.width else builder.trunc(number, wanted)

    def _array(self, at: int, kind: Any) -> Any:
        """Return the array in a slot."""
        context, builder = self._context, self._builder
        array = context.make_array(kind)(context, builder)
        lists = (self._word(at, name, WORD.as_pointer()) for name in ("shape", "strides"))
        shape, strides = ([builder.load(builder.gep(own, [WORD(i)])) for i in range(kind.ndim)] for own in lists)
        item = context.get_data_type(kind.dtype)
        data = self._word(at, "data", item.as_pointer())
        populate_array(array, data, shape, strides, context.get_abi_sizeof(item), None)
        return array._getvalue()  # noqa: SLF001

    def _write(self, at: int, kind: Any, value: Any) -> None:
        """Write a number that the kernel returns."""
        builder, place = self._builder, self._builder.gep(self._room, [WORD(at)])
        if isinstance(kind, types.Float):
            builder.store(value, builder.bitcast(place, value.type.as_pointer()))
        elif value.type.width == WORD.width:
            builder.store(value, place)
        else:
            is_signed = isinstance(kind, types.Integer) and kind.signed
            builder.store((builder.sext if is_signed else builder.zext)(value, WORD), place)
