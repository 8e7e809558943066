"""How Numba compiles a helper: to code that its callers take over, optimise and translate, and no further.

Numba would optimise and translate each helper for itself, and again in every helper that calls it: a third of the time
of compiling a kernel, for code that nobody runs.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization, NativeLowering

__all__ = ["HelperCompiler"]


class _HelperLibrary(JITCodeLibrary):  # type: ignore[misc] # Numba has no types
    """The code of a helper and of what it calls."""

    def _optimize_final_module(self) -> None:
        """Nothing: the callers do it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _BeforeLowering(LoweringPass):  # type: ignore[misc]
    """Have the code put where it is only kept."""

    _name = "fastrec_before_lowering"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _AfterLowering(LoweringPass):  # type: ignore[misc]
    """Offer the code to callers, as Numba does where it compiles."""

    _name = "fastrec_after_lowering"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        # Numba knows code by the builtin that Python would call. None is made here, and nothing calls it, so a bound
        # method of a new list stands in: it is a builtin to Numba, and no two helpers have the same.
        name: list[Any] = []
        state.cr = state.cr._replace(cfunc=name.append)
        state.targetctx.insert_user_function(name.append, state.cr.fndesc, [state.library])
        return True


class HelperCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's steps with the two around the last."""

    def define_pipelines(self) -> list[Any]:
        """One pipeline, without Python's objects."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_BeforeLowering, IRLegalization)
        manager.add_pass_after(_AfterLowering, NativeLowering)
        manager.finalize()
        return [manager]
