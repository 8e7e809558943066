"""Work and objects that threads share."""

import copy
import signal
import sys
import threading
import time
from collections.abc import Callable

import pytest

from fastrec.runtime.shared import Shared
from fastrec.runtime.threads import refuse_to_load, run_in_threads, run_side_by_side, share_threads


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("sizes", [[], [3], [5, 1, 90, 2, 2], [1] * 20, [0, 0]])
def test_results_are_in_order_and_only_large_work_has_all_threads(n_threads: int, sizes: list[int]) -> None:
    seen: dict[int, int] = {}

    def work(at: int, threads: int) -> str:
        seen[at] = threads
        return f"result {at}"

    assert share_threads(work, sizes, n_threads) == [f"result {at}" for at in range(len(sizes))]
    share = sum(sizes) // n_threads
    assert seen == {at: n_threads if size > share else 1 for at, size in enumerate(sizes)}
    assert share_threads(work, sizes, n_threads, least=1000) == [f"result {at}" for at in range(len(sizes))]
    assert set(seen.values()) <= {1}


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("wrong", [{2}, {4, 1}, {3, 2}, {0, 1, 2, 3, 4}])
def test_the_error_of_the_first_position_is_raised_for_any_threads(n_threads: int, wrong: set[int]) -> None:
    """Position 2 is large, so all threads work on it first."""

    def work(at: int, _: int) -> None:
        if at in wrong:
            raise ValueError(f"wrong at {at}")

    with pytest.raises(ValueError, match=rf"^wrong at {min(wrong)}$"):
        share_threads(work, [5, 1, 90, 2, 2], n_threads)


def test_nothing_that_follows_an_error_begins() -> None:
    begun = []

    def work(at: int, _: int) -> None:
        begun.append(at)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - any
        share_threads(work, [1, 1, 90, 1], 2)
    assert set(begun) <= {0, 1, 2}


def test_work_side_by_side_is_done_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=20)

    def work(at: int) -> int:
        meeting.wait()
        return at * at

    assert run_side_by_side(work, range(3), 3) == [0, 1, 4]
    refuse_to_load()  # of no such thread


def test_no_more_work_is_side_by_side_than_there_are_threads() -> None:
    names: set[str] = set()

    def work(at: int) -> int:
        names.add(threading.current_thread().name)
        time.sleep(0.005)
        return at

    assert run_side_by_side(work, range(20), 2) == list(range(20))
    assert len(names) <= 2


def loads(at: int) -> None:
    if at == 1:
        refuse_to_load()


def fails(at: int) -> None:
    if at == 1:
        raise ValueError


@pytest.mark.parametrize("work", [loads, fails])
def test_work_side_by_side_ends_where_one_fails_or_loads(work: Callable[[int], None]) -> None:
    done: list[int] = []
    stopped = threading.Event()

    def attempt(at: int) -> None:
        if at == 1:
            work(at)
        run_in_threads(lambda nth: done.append(nth) or stopped.wait(0.01), range(10**6), 1)

    assert run_side_by_side(attempt, range(2), 2) is None
    assert len(done) < 10**6
    assert [run_in_threads(abs, range(3), 1)] == [[0, 1, 2]]  # this thread goes on


def test_an_interrupt_ends_work_side_by_side_between_its_tasks() -> None:
    done: list[int] = []
    began = threading.Event()

    def attempt(_: int) -> None:
        run_in_threads(lambda nth: done.append(nth) or began.set() or time.sleep(0.01), range(10**6), 1)

    def interrupt() -> None:
        began.wait()
        signal.raise_signal(signal.SIGINT)

    before = threading.active_count()
    timer = threading.Thread(target=interrupt)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run_side_by_side(attempt, range(2), 2)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert threading.active_count() == before
    assert len(done) < 10**4


def test_an_interrupt_ends_the_work() -> None:
    begun = []

    def work(at: int, _: int) -> None:
        begun.append(at)
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        share_threads(work, [90, 1, 1, 1], 2)
    assert begun == [0] and threading.active_count() == before


def test_a_copy_while_another_thread_keeps_properties() -> None:
    shared, ended = Shared(), threading.Event()
    shared.__dict__ |= dict.fromkeys(map(str, range(200)))  # so many that a thread can come between

    def keep() -> None:
        while not ended.is_set():
            for name in ("first", "second", "third"):
                shared.__dict__[name] = 1
            for name in ("first", "second", "third"):
                del shared.__dict__[name]

    thread, before = threading.Thread(target=keep), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        copies = [copy.copy(shared) for _ in range(500)]
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(before)
    assert all(own.__dict__.keys() >= {"_locks", "_torn"} for own in copies)
