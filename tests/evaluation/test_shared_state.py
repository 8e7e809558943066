"""Evaluators and histograms shared by threads: copies are whole; a forked child waits for no thread of its parent."""

import copy
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation.state import State
from fastrec.scored import histogram as histograms
from fastrec.scored.histogram import ScoreHistogram

ROOT = Path(__file__).parents[2]
N = 3  # users of a batch
DUPLICATES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


class Pause:
    """Gate that holds each thread that reaches it until another thread opens it."""

    def __init__(self) -> None:
        self.reached, self.released = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.released.wait(60)


@pytest.fixture
def pause() -> Iterator[Pause]:
    held = Pause()
    yield held
    held.released.set()


def lists() -> tuple[Any, Callable[[Any], None], Callable[[Any], list[Any]]]:
    evaluator = fastrec.Evaluator("recall@1", per_user=True)
    return (
        evaluator,
        lambda one: one.update([[1]] * N, [[1]] * N, groups=["a"] * N),
        lambda one: [one.result().users["total"], len(one.result().per_user["recall@1"]), len(one.result().labels)],
    )


def rows() -> tuple[Any, Callable[[Any], None], Callable[[Any], list[Any]]]:
    evaluator = fastrec.ScoreEvaluator(["gauc", "auc"], per_user=True)
    return (
        evaluator,
        lambda one: one.update([1, 0] * N, [0.5, 0.25] * N, np.arange(N + 1) * 2),
        lambda one: [one.result().users["total"], len(one.result().per_user["gauc"]), one.result().data["rows"]],
    )


def histogram() -> tuple[Any, Callable[[Any], None], Callable[[Any], list[Any]]]:
    return (
        ScoreHistogram(16),
        lambda one: one.add(np.array([0, 1], np.int8), np.array([0.25, 0.5])),
        lambda one: [one.auc(), *(int(column.sum()) for name, column in one.pack().items() if name != "bins")],
    )


# How to make an object, change it and read it, and the function in the middle of a change.
KINDS: dict[str, Any] = {"lists": (lists, State), "rows": (rows, State), "histogram": (histogram, histograms)}


def hold(monkeypatch: pytest.MonkeyPatch, kind: str, pause: Pause) -> None:
    """Stop changes half way from now on."""
    owner, name = KINDS[kind][1], "launch" if kind == "histogram" else "add"
    whole = getattr(owner, name)

    def half(*arguments: Any, **options: Any) -> Any:
        found = whole(*arguments, **options)
        pause()
        return found

    monkeypatch.setattr(owner, name, half)


@pytest.mark.thorough
@pytest.mark.parametrize("how", DUPLICATES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_waits_until_a_change_is_whole(
    kind: str, how: str, pause: Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, change, ask = KINDS[kind][0]()
    change(one)
    before = ask(one)
    found: list[Any] = []
    copier = threading.Thread(target=lambda: found.append(DUPLICATES[how](one)))
    with monkeypatch.context() as patch:
        hold(patch, kind, pause)
        changer = threading.Thread(target=change, args=(one,))
        changer.start()
        assert pause.reached.wait(60)
        copier.start()
        copier.join(0.2)
        assert not found, "copied in the middle of a change"
        pause.released.set()
        changer.join()
        copier.join()
    assert ask(found[0]) == ask(one) != before
    change(one)
    assert ask(found[0]) != ask(one), "a copy shares nothing that changes"


@pytest.mark.parametrize("kind", KINDS)
def test_all_else_waits_too(kind: str, pause: Pause, monkeypatch: pytest.MonkeyPatch) -> None:
    one, change, ask = KINDS[kind][0]()
    other = KINDS[kind][0]()[0]
    change(other)
    change(one)
    before = ask(one)
    calls: list[Callable[[], Any]] = [lambda: ask(one), lambda: copy.copy(other).merge(one)]
    if kind != "histogram":
        calls.append(one.to_bytes)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda call=call: found.append(call())) for call in calls]
    with monkeypatch.context() as patch:
        hold(patch, kind, pause)
        changer = threading.Thread(target=change, args=(one,))
        changer.start()
        assert pause.reached.wait(60)
        for thread in threads:
            thread.start()
        threads[0].join(0.2)
        assert not found
        pause.released.set()
        for thread in [changer, *threads]:
            thread.join()
    assert len(found) == len(calls)
    assert before not in found


def test_threads_that_share_a_histogram_lose_no_row() -> None:
    shared, alone = ScoreHistogram(16), ScoreHistogram(16)
    labels, scores = (np.arange(100_000) % 2).astype(np.int8), np.linspace(0, 1, 100_000)
    adders = [threading.Thread(target=lambda: [shared.add(labels, scores) for _ in range(20)]) for _ in range(4)]
    for thread in adders:
        thread.start()
    for thread in adders:
        thread.join()
    for _ in range(80):
        alone.add(labels, scores)
    assert {name: column.tolist() for name, column in shared.pack().items()} == {
        name: column.tolist() for name, column in alone.pack().items()
    }


def test_what_copies_of_a_histogram_are_made_of_changes_no_more() -> None:
    seen = ScoreHistogram(16)
    seen.add(np.array([0, 1], np.int8), np.array([0.25, 0.5]))
    state, before = seen.__getstate__(), {name: column.tolist() for name, column in seen.pack().items()}
    seen.add(np.array([0, 1], np.int8), np.array([0.125, 0.75]))  # like another thread, before the copy is made
    twin = ScoreHistogram(16)
    twin.__setstate__(state)
    assert {name: column.tolist() for name, column in twin.pack().items()} == before


def test_a_histogram_that_was_given_a_nan_says_so_ever_after() -> None:
    seen = ScoreHistogram(16)
    seen.add(np.array([0, 1], np.int8), np.array([0.25, 0.5]))
    with pytest.raises(fastrec.InputError, match="NaN"):
        seen.add(np.array([0, 1], np.int8), np.array([0.25, np.nan]))
    for call in (seen.auc, seen.pack, lambda: ScoreHistogram(16).merge(seen), lambda: copy.copy(seen).auc()):
        with pytest.raises(fastrec.FastrecError, match="incomplete"):
            call()


# Forks

FORKING = """
import copy, os, pickle, signal, sys, threading, warnings
import numpy as np
import fastrec
warnings.simplefilter("ignore")
from fastrec.scored.histogram import ScoreHistogram
from fastrec.evaluation.state import State
reached, released = threading.Event(), threading.Event()
def pause(*_):
    reached.set()
    released.wait(60)
def stopping(whole):
    def half(*arguments, **options):
        found = whole(*arguments, **options)
        pause()
        return found
    return half
def in_child(work):
    # its exit code: 0 if the work ends in time with the right result
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        code = 9
        try:
            code = 0 if work() else 5
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def while_held(work, held):
    # the work of a child forked while another thread waits in the middle of its work
    thread = threading.Thread(target=held)
    thread.start()
    assert reached.wait(60)
    code = in_child(work)
    released.set()
    thread.join()
    return code
evaluator = fastrec.Evaluator("recall@1", per_user=True)
scored = fastrec.ScoreEvaluator("gauc", per_user=True)
def of_lists(one, **call):
    one.update([[1]] * 3, [[1]] * 3, **call)
def of_rows(one, **call):
    one.update([1, 0] * 3, [0.5, 0.25] * 3, np.arange(4) * 2, **call)
of_lists(evaluator)
of_rows(scored)
def usable(one, add):
    other = pickle.loads(pickle.dumps(copy.deepcopy(copy.copy(one))))
    add(one)
    one.merge(other)
    one.to_bytes()
    return one.result().users["total"] == 9
def says_that_it_is_torn(call):
    try:
        call()
    except fastrec.FastrecError as error:
        return "incomplete" in str(error) and "fork" in str(error)
"""


def run(code: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", FORKING + code],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_fork
@pytest.mark.parametrize(("name", "add"), [("evaluator", "of_lists"), ("scored", "of_rows")])
def test_a_child_uses_an_evaluator_that_another_thread_was_using(name: str, add: str) -> None:
    """The child has everything that was added before; neither process loads the compiler."""
    code = f"print(while_held(lambda: usable({name}, {add}), lambda: {add}({name}, progress=pause)))"
    code += f"\nprint({name}.result().users['total'], 'numba' in sys.modules)"
    assert run(code) == ["0", "6 False"]


@needs_fork
def test_a_child_that_the_user_of_an_evaluator_forks_goes_on() -> None:
    code = """
children = []
def fork(done, total):
    children.append(os.fork())
of_lists(evaluator, progress=fork)
total = evaluator.result().users["total"]
if 0 in children:
    os._exit(total)
print(total, [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children][0])
"""
    assert run(code) == ["6 6"]


@needs_fork
@pytest.mark.parametrize(
    ("name", "change", "calls"),
    [
        ("evaluator", "of_lists(evaluator)", ["evaluator.result()", "evaluator.to_bytes()", "of_lists(evaluator)"]),
        ("scored", "of_rows(scored)", ["scored.result()", "copy.copy(scored).result()", "of_rows(scored)"]),
        ("evaluator", "of_lists(evaluator)", ["fastrec.Evaluator('recall@1', per_user=True).merge(evaluator)"]),
    ],
)
def test_a_child_is_told_of_a_change_that_it_has_half(name: str, change: str, calls: list[str]) -> None:
    code = f"""
State.add = stopping(State.add)
def work():
    torn = all([{", ".join(f"says_that_it_is_torn(lambda: {call})" for call in calls)}])
    released.set()
    fresh = fastrec.Evaluator("recall@1")
    of_lists(fresh)
    return torn and fresh.result().users["total"] == 3
print(while_held(work, lambda: {change}), {name}.result().users["total"])
"""
    assert run(code) == ["0 6"]


@needs_fork
def test_a_child_is_told_of_a_histogram_that_it_has_half() -> None:
    code = """
seen = ScoreHistogram(16)
add = lambda: seen.add(np.array([0, 1], np.int8), np.array([0.25, 0.5]))
add()
from fastrec.scored import histogram
histogram.launch = stopping(histogram.launch)
print(while_held(lambda: says_that_it_is_torn(seen.auc) and says_that_it_is_torn(add), add), seen.auc())
"""
    assert run(code) == ["0 1.0"]


@needs_fork
def test_a_child_has_no_lock_of_a_thread_that_was_working_out_a_property() -> None:
    """Python 3.11 uses one lock for all metrics while it computes the name of any."""
    code = """
from fastrec.metrics import declaration as registry
print_value = registry.print_value
registry.print_value = stopping(print_value)
def work():
    released.set()
    return list(fastrec.evaluate([[1]], [[1]], "map(denominator=n_rel)@3")) == ["map(denominator=n_rel)@3"]
print(while_held(work, lambda: fastrec.Evaluator("map(denominator=n_rel)@2")))
"""
    assert run(code) == ["0"]


@needs_fork
def test_importing_hooks_into_no_fork() -> None:
    """Only the first use registers a hook, once."""
    code = """
import os
hooks = []
os.register_at_fork = lambda **own: hooks.append(own["after_in_child"].__module__)
def ours():
    return sum(module.startswith("fastrec") for module in hooks)
import fastrec
fastrec.InputError, fastrec.Ragged([1], [0, 1])
print(ours())
fastrec.Evaluator("recall@1"), fastrec.ScoreEvaluator("gauc"), fastrec.evaluate([[1]], [[1]], "recall@1")
print(ours())
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["0", "1"]
