"""Numba's compiler without its last steps, for helpers: their callers optimise and translate the code.

Numba would optimise and translate each helper on its own, and again in every helper that calls it. That takes a third
of the time of compiling a kernel, for code that never runs. All of this uses private parts of Numba.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization, NativeLowering

__all__ = ["HelperCompiler"]


class _HelperLibrary(JITCodeLibrary):  # type: ignore[misc] # Numba has no types
    """The code of a helper and of the helpers that it calls, neither optimised nor translated."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the callers optimise."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _BeforeLowering(LoweringPass):  # type: ignore[misc]
    """Put the code into a library that only keeps it."""

    _name = "fastrec_before_lowering"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _AfterLowering(LoweringPass):  # type: ignore[misc]
    """Offer the code to callers, as Numba does after compiling."""

    _name = "fastrec_after_lowering"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        # Numba identifies code by the builtin that Python would call. There is none here, and nothing would call it.
        # A bound method of a new list takes its place: Numba sees a builtin, and each helper has its own.
        name: list[Any] = []
        state.cr = state.cr._replace(cfunc=name.append)
        state.targetctx.insert_user_function(name.append, state.cr.fndesc, [state.library])
        return True


class HelperCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's steps with one of ours before and one after lowering."""

    def define_pipelines(self) -> list[Any]:
        """Return the one pipeline, in nopython mode."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_BeforeLowering, IRLegalization)
        manager.add_pass_after(_AfterLowering, NativeLowering)
        manager.finalize()
        return [manager]
