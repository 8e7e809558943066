"""Output files that are whole or absent, wherever their path leads; temporary folders that are gone in the end."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fastrec
from fastrec import InputError
from fastrec.runtime import outputs
from fastrec.runtime.outputs import atomic_write, temporary_folder

REPORT = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["precision@2"])
PAGE = REPORT.to_html()
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root, who can make devices and give files away")
needs_owners = pytest.mark.skipif(not hasattr(os, "fchown"), reason="files have no owner on this system")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def stop_halfway():
        with atomic_write(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_halfway()
    assert path.read_text() == "old"
    with atomic_write(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    with atomic_write(tmp_path / "other") as stream:
        stream.write(b"half")
        stream.flush()
        assert not (tmp_path / "other").exists()
    assert sorted(os.listdir(tmp_path)) == ["other", "out.txt"]


def test_a_link_keeps_leading_to_the_file(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "to no file").symlink_to("made")
    for name in ("link", "to no file"):
        with atomic_write(tmp_path / name) as stream:
            stream.write(b"new")
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "real").read_text() == (tmp_path / "made").read_text() == "new"


@needs_owners
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "report.npz"
    path.touch()
    path.chmod(mode)
    with atomic_write(path) as stream:
        (made,) = (each for each in tmp_path.iterdir() if each != path)
        assert mode_of(made) == mode, "before anything is in it"
        stream.write(b"new")
    assert mode_of(path) == mode
    assert path.read_bytes() == b"new"


@needs_root
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "report.npz"
    path.touch()
    os.chown(path, 12345, 12346)
    path.chmod(0o4755)
    REPORT.save(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode_of(path)) == (12345, 12346, 0o755), "and does not run as another user"


AS_ANOTHER = """
import os, sys
import fastrec
report = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["precision@2"])
os.chdir(sys.argv[1])
os.setgroups([])
os.setgid(12345)
os.setuid(12345)
for name in ("read-only", "of root", "closed/report.npz"):
    try:
        report.save(name)
    except PermissionError as error:
        print(error.filename, "refused")
report.save("of all")
print(os.stat("of all").st_uid, sorted(os.listdir()))
"""


@needs_root
def test_what_this_user_may_not_write_to_is_refused(tmp_path):
    """The error is that of `open`; the attempt leaves nothing behind, and the error names the user's path."""
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    for name, owner, mode in (("read-only", 12345, 0o444), ("of root", 0, 0o644), ("of all", 0, 0o666)):
        (tmp_path / name).write_text("old")
        os.chown(tmp_path / name, owner, owner)
        (tmp_path / name).chmod(mode)
    (tmp_path / "closed").mkdir(mode=0o755)
    done = run(AS_ANOTHER, tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "read-only refused",
        "of root refused",
        "closed/report.npz refused",
        "12345 ['closed', 'of all', 'of root', 'read-only']",
    ]
    assert (tmp_path / "read-only").read_text() == (tmp_path / "of root").read_text() == "old"


def run(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(Path(fastrec.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


@pytest.mark.parametrize("write", [REPORT.save, REPORT.to_html])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, write):
    pipe, copy = tmp_path / "pipe", tmp_path / "copy"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: copy.write_bytes(pipe.read_bytes()), daemon=True)
    reader.start()
    write(pipe)
    reader.join(30)
    assert not reader.is_alive()
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert sorted(os.listdir(tmp_path)) == ["copy", "pipe"]
    if write == REPORT.save:
        assert fastrec.load(copy).to_json() == REPORT.to_json()
    else:
        assert copy.read_text() == PAGE


def test_the_device_that_is_always_there():
    for write in (REPORT.save, REPORT.to_html):
        write(os.devnull)
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


@needs_root
def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"no device of our own: {error}")
    REPORT.save(device)
    assert stat.S_ISCHR(os.stat(device).st_mode)
    assert os.listdir(tmp_path) == ["null"]


TO_STANDARD_OUTPUT = """
import fastrec
report = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["precision@2"])
print("before", flush=True)
report.to_html("/dev/stdout")
print("after")
"""


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="standard output has no name on this system")
def test_standard_output_is_written_to_where_it_stands(tmp_path):
    """This holds for a pipe and for a file that must keep the other output."""
    wanted = f"before\n{PAGE}after\n"
    assert run(TO_STANDARD_OUTPUT).stdout == wanted
    with (tmp_path / "out").open("w") as file:
        done = subprocess.run(
            [sys.executable, "-c", TO_STANDARD_OUTPUT],
            env=os.environ | {"PYTHONPATH": str(Path(fastrec.__file__).parents[1])},
            stdout=file,
            check=False,
        )
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == wanted
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV])
def test_what_cannot_be_replaced_is_written_where_it_is(tmp_path, monkeypatch, number):
    path = tmp_path / "report.npz"
    path.write_bytes(bytes(100_000))
    before = path.stat().st_ino

    def refuse(source, target):
        raise OSError(number, os.strerror(number), source, None, target)

    monkeypatch.setattr(os, "replace", refuse)
    REPORT.save(path)
    assert path.stat().st_ino == before
    assert fastrec.load(path).to_json() == REPORT.to_json()
    assert os.listdir(tmp_path) == ["report.npz"]


def test_a_mounted_file(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.touch()
    outside.write_text("old")
    mounted = subprocess.run(["mount", "--bind", outside, inside], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted: {mounted.stderr.decode().strip()}")
    try:
        REPORT.save(inside)
    finally:
        subprocess.run(["umount", inside], check=True)
    assert fastrec.load(outside).to_json() == REPORT.to_json()
    assert sorted(os.listdir(tmp_path)) == ["inside", "outside"]


def test_an_error_of_the_system_names_the_path_that_was_given(tmp_path, monkeypatch):
    path = tmp_path / "report.npz"

    def refuse(source, target):
        raise OSError(errno.EPERM, "Operation not permitted", source, None, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError) as caught:
        REPORT.save(path)
    assert caught.value.filename == str(path)
    assert ".tmp" not in str(caught.value)
    assert os.listdir(tmp_path) == []


NO_NAMES = {"empty": "", "a zero byte": "a\0b", "an unpaired surrogate": "\ud800x"}


@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_what_no_file_can_be_called_is_an_error_of_ours(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.csv").write_text("user_id,item_id\n1,1\n")
    comparison = fastrec.compare({"a": REPORT_OF_USERS, "b": REPORT_OF_USERS})
    for call in (
        lambda: REPORT.save(name),
        lambda: REPORT.to_html(name),
        lambda: comparison.to_html(name),
        lambda: fastrec.load(name),
        lambda: fastrec.evaluate_files(name, "lists.csv"),
        lambda: fastrec.evaluate_files("lists.csv", name),
        lambda: fastrec.evaluate_files("lists.csv", "lists.csv", users=name),
        lambda: fastrec.evaluate_files("lists.csv", "lists.csv", exclude=name),
        lambda: fastrec.evaluate_files("lists.csv", "lists.csv", temp_directory=name),
        lambda: fastrec.explain("mrr", name, "lists.csv"),
    ):
        with pytest.raises(InputError, match="must be a valid file name, found "):
            call()
    assert os.listdir(tmp_path) == ["lists.csv"]


REPORT_OF_USERS = fastrec.evaluate([[1, 2, 3]] * 3, [[2, 9]] * 3, ["precision@2"], per_user=True)


@pytest.mark.parametrize("call", [REPORT.save, REPORT.to_html, fastrec.load])
def test_a_folder_is_an_error_of_ours(tmp_path, call):
    with pytest.raises(InputError, match="is a folder; expected a file name"):
        call(tmp_path)
    assert os.listdir(tmp_path) == []


def test_no_folder_to_write_to_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        with pytest.raises(InputError, match=f"cannot write .*: the folder .*{name} does not exist"):
            REPORT.save(tmp_path / name / "report.npz")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("call", [REPORT.save, REPORT.to_html, fastrec.load])
def test_the_rest_the_system_says_under_the_name_that_was_given(tmp_path, call):
    (tmp_path / "loop").symlink_to("loop")
    wanted = [tmp_path / "loop", tmp_path / ("x" * 300)]
    for path in wanted:
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            call(path)
        assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == ["loop"]


REMOVED_SLOWLY = """
import os, signal, sys, time
from fastrec.runtime.outputs import temporary_folder
from fastrec.runtime.signals import end_on_signals, exit_code
unlink = os.unlink
def slowly(*arguments, **options):  # like files of gigabytes
    time.sleep(0.5)
    unlink(*arguments, **options)
end_on_signals()
try:
    with temporary_folder(sys.argv[1]) as folder:
        for name in "abc":
            open(os.path.join(folder, name), "w").close()
        os.unlink = slowly
        {end}
except KeyboardInterrupt:
    sys.exit(exit_code())
"""


@pytest.mark.thorough(except_for="never")
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", 128 + signal.SIGTERM),
        (
            "import threading; threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()",
            128 + signal.SIGTERM,
        ),
        ("pass", 0),
    ],
    ids=["in the block", "while it is removed", "never"],
)
def test_a_signal_leaves_no_folder_that_is_removed_slowly(tmp_path, end, code):
    done = run(REMOVED_SLOWLY.format(end=end), tmp_path)
    assert done.returncode == code, done.stderr
    assert os.listdir(tmp_path) == []


# Folders of processes that were killed

KILLED = """
import os, signal, sys
from fastrec.runtime.outputs import temporary_folder
with temporary_folder(sys.argv[1]) as folder:
    os.mkdir(os.path.join(folder, "deep"))
    open(os.path.join(folder, "deep", "rows.duckdb"), "w").close()
    print(folder, flush=True)
    {end}
"""
needs_locks = pytest.mark.skipif(outputs.fcntl is None, reason="this system has no locks that end with a process")


def abandoned_in(parent):
    """A folder of a killed process."""
    done = run(KILLED.format(end="os.kill(os.getpid(), signal.SIGKILL)"), parent)
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = Path(done.stdout.strip())
    assert folder.is_dir()
    return folder


@needs_locks
def test_a_later_run_removes_the_folders_of_processes_that_were_killed(tmp_path):
    for _ in range(2):
        abandoned_in(tmp_path)
    with temporary_folder(tmp_path) as own:
        assert os.listdir(tmp_path) == [os.path.basename(own)]
    assert os.listdir(tmp_path) == []


@needs_locks
def test_a_later_run_leaves_the_folder_of_a_process_that_runs(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(fastrec.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED.format(end="sys.stdin.read()"), str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        folder = process.stdout.readline().strip()
        with temporary_folder(tmp_path):
            assert os.path.exists(os.path.join(folder, "deep", "rows.duckdb"))
        process.stdin.close()
    assert process.returncode == 0
    assert os.listdir(tmp_path) == []


@needs_locks
def test_a_later_run_leaves_what_may_be_of_others(tmp_path, monkeypatch):
    """Folders of another host, of another user, links, folders without the file of an owner, files."""
    shared, outside = tmp_path / "shared", tmp_path / "outside"
    shared.mkdir()
    outside.mkdir()
    foreign = abandoned_in(outside)
    (shared / "fastrec-link").symlink_to(foreign)
    (shared / "fastrec-file").touch()
    (shared / "fastrec-mine").mkdir()
    (shared / "fastrec-host").mkdir()
    (shared / "fastrec-host" / outputs.OWNED).write_text("another host")
    (shared / "fastrec-hidden").mkdir()
    (shared / "fastrec-hidden" / outputs.OWNED).symlink_to(foreign / outputs.OWNED)
    (shared / "fastrec-pipe").mkdir()
    os.mkfifo(shared / "fastrec-pipe" / outputs.OWNED)
    before = sorted(os.listdir(shared))
    with temporary_folder(shared):
        pass
    assert sorted(os.listdir(shared)) == before
    assert foreign.is_dir()
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with temporary_folder(outside):
        assert foreign.is_dir()


@needs_locks
def test_many_runs_may_remove_one_folder_at_once(tmp_path):
    for _ in range(5):
        abandoned_in(tmp_path)
    done = []

    def make() -> None:
        with temporary_folder(tmp_path) as folder:
            done.append(os.path.isdir(folder))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [True] * 8
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    report = fastrec.evaluate([[1, 2]], [[2]], "mrr")
    with pytest.raises(OSError, match="'/dev/full'") as error:
        report.save("/dev/full")
    assert error.value.errno == errno.ENOSPC

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fastrec.runtime.outputs._keep_owner_and_mode", fail)
    path = tmp_path / "report.fastrec"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match=r"No space left on device: .*report\.fastrec"):
        report.save(path)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == [path.name]
