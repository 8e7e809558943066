"""Interrupts: work stops, nothing is left behind, and the command ends whatever it is doing."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

import fastrec
from fastrec.runtime.threads import run_in_threads
from support.logs import write_large

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

WAIT = 10  # seconds; the promise is one second, but other programs may use the machine


@pytest.fixture(autouse=True)
def _heard():
    """Shells make background programs and their children ignore interrupts; these must not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A folder with shuffled lists that take a second or two to sort, and a truth."""
    folder = tmp_path_factory.mktemp("large")
    write_large(folder, 4_000_000)
    return folder


COMMAND = "from fastrec.cli.program import main; main()"
# A shell does this for a program in the foreground; nohup and the background ignore some of these signals.
HEED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""


@contextlib.contextmanager
def started(*arguments, code=COMMAND):
    """Start the command in a separate process."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(Path(fastrec.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_threads_of_a_call_have_ended_when_its_interrupt_is_raised():
    """Also one that works on while the main thread, interrupted as it joins it, takes it for ended."""
    working, others = set(), threading.active_count()

    def work(task):
        working.add(task)
        time.sleep((1.0, 0.4)[task % 2])
        working.remove(task)

    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_in_threads(work, range(100), 2)
    assert not working
    timer.join()
    assert threading.active_count() <= others + 1  # one may be about to end


INTERRUPTED = """
import os, signal, time
import fastrec.demo
from fastrec.cli import program

def interrupted(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

fastrec.demo.write_demo = interrupted
program.main()
"""


def test_an_interrupt_is_quiet():
    with started("demo", code=INTERRUPTED) as process:
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 130


def wait_for(pattern, folder, process):
    while process.poll() is None and not list(folder.glob(pattern)):
        time.sleep(0.01)


@pytest.mark.thorough(except_for="SIGINT-1|SIGTERM-1")
@pytest.mark.parametrize(("number", "times"), [("SIGINT", 1), ("SIGINT", 5), ("SIGTERM", 1), ("SIGHUP", 2)])
def test_the_command_while_it_reads(large, tmp_path, number, times):
    ending = getattr(signal, number)
    paths = large / "recs.parquet", large / "truth.parquet"
    with started("evaluate", *paths, "--memory", "64MB", "--temp-dir", tmp_path, code=HEED + COMMAND) as process:
        wait_for("*/parts", tmp_path, process)
        for _ in range(times):  # like a key held down
            process.send_signal(ending)
            time.sleep(0.01)
        assert process.communicate(timeout=WAIT) == ("", "")
    assert process.returncode == 128 + ending
    assert os.listdir(tmp_path) == []


@pytest.mark.thorough
def test_the_command_in_the_background_goes_on(large, tmp_path):
    paths = large / "recs.parquet", large / "truth.parquet"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # like a shell
    with started("evaluate", *paths, "-m", "mrr", "--memory", "64MB", "--temp-dir", tmp_path) as process:
        wait_for("*/parts", tmp_path, process)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0].startswith("metric")
    assert process.returncode == 0


STUCK = """
import signal, time
import pyarrow.parquet
from fastrec.cli import program
from fastrec.files import job

def stuck(*_):
    while True:
        try:
            signal.raise_signal(signal.{number})
            time.sleep(60)
        except KeyboardInterrupt:
            pass

job.COPIES = 1 << 40
{place} = stuck
program.main()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("job.RowPartitions.batches", "SIGINT"),
        ("pyarrow.parquet.write_table", "SIGINT"),
        ("pyarrow.parquet.write_table", "SIGTERM"),
    ],
)
def test_the_command_where_nothing_heeds_a_signal(tmp_path, place, number):
    for name in ("recs.csv", "truth.csv"):
        (tmp_path / name).write_text("user_id,item_id\n1,10\n2,11\n")
    paths = tmp_path / "recs.csv", tmp_path / "truth.csv"
    options = "--temp-dir", tmp_path, "--per-user", tmp_path / "users.parquet"
    with started("evaluate", *paths, *options, code=STUCK.format(place=place, number=number)) as process:
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 128 + getattr(signal, number)
    assert sorted(os.listdir(tmp_path)) == ["recs.csv", "truth.csv"]


FROM_PYTHON = """
import sys
import fastrec
folder, own = sys.argv[1:]
paths = f"{folder}/recs.parquet", f"{folder}/truth.parquet"
try:
    fastrec.evaluate_files(*paths, "mrr", memory="64MB", temp_directory=own)
except KeyboardInterrupt:
    print("stopped")
print(fastrec.evaluate([[1, 2]], [[2]], "mrr")["mrr"])
"""


def test_a_program_that_reads_files(large, tmp_path):
    with started(large, tmp_path, code=FROM_PYTHON) as process:
        wait_for("*/parts", tmp_path, process)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=WAIT) == ("stopped\n0.5\n", "")
    assert os.listdir(tmp_path) == []


def test_a_thread_that_an_exception_ends_before_its_work_is_not_waited_for(monkeypatch):
    """A handler of signals may raise within `Thread.start`: the thread then ends on the way to its work."""

    def start(thread):
        thread.run = lambda: None
        thread.start()
        raise TimeoutError("of the caller")

    monkeypatch.setattr("fastrec.runtime.threads.start_thread", start)
    with pytest.raises(TimeoutError, match="of the caller"):
        run_in_threads(lambda at: at, range(4), 2)


@pytest.fixture
def alarm():
    """Set a handler that raises an error, and return what calls it in the main thread."""
    before = signal.getsignal(signal.SIGALRM)

    def ring(error):
        def handler(*_):
            raise error("of the caller")

        signal.signal(signal.SIGALRM, handler)
        return lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    yield ring
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("error", [TimeoutError, MemoryError])
@pytest.mark.parametrize("kind", ["report", "state"])
def test_what_a_handler_raises_is_no_error_of_what_is_read(tmp_path, monkeypatch, alarm, kind, error):
    evaluator = fastrec.Evaluator("recall@1", per_user=True)
    evaluator.update([[1]], [[1]])
    state = evaluator.to_bytes()
    evaluator.result().save(tmp_path / "report")
    real, ring = fastrec.report.archive._read_array, alarm(error)

    def read(*arguments):
        ring()
        time.sleep(0.2)
        return real(*arguments)

    monkeypatch.setattr(fastrec.report.archive, "_read_array", read)
    with pytest.raises(error, match="of the caller"):
        fastrec.load(tmp_path / "report") if kind == "report" else fastrec.Evaluator.from_bytes(state)


@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
def test_what_a_handler_raises_is_no_error_of_what_is_written(tmp_path, monkeypatch, alarm, error):
    report = fastrec.evaluate([[1]], [[1]], "recall@1")
    real, ring = zipfile.ZipFile._open_to_write, alarm(error)

    def open_member(*arguments, **options):
        stream = real(*arguments, **options)
        ring()  # between the opening and the block of `with`
        return stream

    monkeypatch.setattr(zipfile.ZipFile, "_open_to_write", open_member)
    with pytest.raises(error, match="of the caller"):
        report.save(tmp_path / "report")
    assert list(tmp_path.iterdir()) == []
