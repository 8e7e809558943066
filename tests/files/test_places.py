"""Files at URLs: a local server and stores in memory give the bits of local files; messages, no credentials."""

import base64
import functools
import http.server
import json
import sys
import threading

import numpy as np
import pytest

import fastrec
from fastrec import checks, evaluate_files
from fastrec.checks import is_any_url, shown_url
from fastrec.exceptions import FastrecWarning, InputError, MissingExtraError, MissingFileError
from fastrec.files import places
from support import read_files
from support.bits import bits_of
from support.command_line import run_fastrec
from support.logs import ranked_lists
from support.stores import store_of
from support.tables import write_table

pa = pytest.importorskip("pyarrow")
pytest.importorskip("click")
compute = pytest.importorskip("pyarrow.compute")
csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

METRICS = ["ndcg@5", "recall@3", "mrr"]
N_PARTS = 40


def tables():
    """Return lists and truth."""
    return ranked_lists(n_users=60), ranked_lists(n_users=60, n_items=3, seed=2).drop_columns("rank")


def fails(*paths, **options):
    """Return the message of an error that tells neither a password nor the copies of files."""
    told = read_files.fails(*paths, **options)
    assert "secret" not in told and "fastrec-" not in told
    return told


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; notes each request, asks for a password below /private, and cuts a file below /cut."""

    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.passwords.append(self.headers["Authorization"])
        self.path = self.path.partition("?")[0]
        wanted = "Basic " + base64.b64encode(b"ann:secret").decode()
        if self.path.startswith("/private/") and self.headers["Authorization"] != wanted:
            self.send_error(401)
        elif self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header(
                "Location", f"http://localhost:{self.server.server_port}{self.path.removeprefix('/moved')}"
            )
            self.end_headers()
        elif self.path == "/silent.csv":
            self.server.is_over.wait(9)
        elif self.path == "/cut.csv":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"user_id,item_id\n1,1\n")
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        server.asked, server.passwords, server.folder, server.place = [], [], folder, f"127.0.0.1:{server.server_port}"
        server.is_over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.is_over.set()
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "csv.zst"])
def test_a_server_gives_the_bits_of_local_files(server, form):
    for name, table in zip(("recs", "truth"), tables(), strict=True):
        write_table(table, server.folder / f"{name}.{form}")
    paths = [server.folder / f"{name}.{form}" for name in ("recs", "truth")]
    wanted = bits_of(evaluate_files(*paths, METRICS))
    urls = [f"http://{server.place}/{path.name}" for path in paths]
    assert bits_of(evaluate_files(*urls, METRICS)) == wanted
    assert sorted(server.asked) == [f"/{path.name}" for path in paths]
    with pytest.warns(FastrecWarning, match="exclude removed"):
        evaluate_files(*urls, METRICS, exclude=urls[1])
    assert len(server.asked) == 4  # equal URLs are copied once


def test_passwords_queries_and_redirects(server):
    recs, truth = tables()
    write_table(recs, server.folder / "private" / "recs of 1.csv")
    write_table(truth, server.folder / "truth.csv")
    given = f"http://ann:secret@{server.place}/private/recs%20of%201.csv?token=secret#part"
    truth_url = f"http://ann:secret@{server.place}/moved/truth.csv"
    found = evaluate_files(given, truth_url, METRICS)
    assert bits_of(found) == bits_of(
        evaluate_files(server.folder / "private" / "recs of 1.csv", server.folder / "truth.csv", METRICS)
    )
    assert server.asked == ["/private/recs%20of%201.csv?token=secret", "/moved/truth.csv", "/truth.csv"]
    assert [password is None for password in server.passwords] == [False, False, True]


def test_errors_and_warnings_name_the_url_without_credentials(server, tmp_path):
    recs, truth = tables()
    write_table(recs, server.folder / "recs.csv")
    write_table(truth.append_column("rating", pa.array(np.arange(len(truth)) % 5 + 1)), server.folder / "truth.csv")
    place = f"http://ann:secret@{server.place}"
    truth_url, shown = f"{place}/truth.csv?token=secret", f"http://{server.place}"
    assert fails(f"{place}/none.parquet?token=secret", truth_url, error=MissingFileError) == (
        f"{shown}/none.parquet: no such file"
    )
    wrong = f"http://eve:secret@{server.place}/private/recs.csv"
    assert fails(wrong, truth_url) == f"{shown}/private/recs.csv: the server answers 401 Unauthorized"
    told = fails(f"{place}/cut.csv", truth_url)
    assert told.startswith(f"{shown}/cut.csv: cannot be read: Response payload is not completed: ")
    assert fails(f"{place}/recs.csv", truth_url, item="sku").startswith(f"{shown}/recs.csv: no column 'sku'")
    with pytest.warns(FastrecWarning) as warned:
        report = evaluate_files(f"{place}/recs.csv", truth_url, METRICS)
    texts = [str(warning.message) for warning in warned] + report.warnings
    assert any(f"{shown}/truth.csv" in text or "rating" in text for text in texts)
    assert not any("secret" in text or str(tmp_path) in text or "fastrec-" in text for text in texts)
    server.shutdown()
    server.server_close()
    assert fails(f"{place}/recs.csv", truth_url).startswith(f"{shown}/recs.csv: cannot be read: ")
    for url in ("http://ann:secret@[/recs.csv", "http://ann:secret@127.0.0.1:none/recs.csv", "https://"):
        assert "cannot be read" in fails(url, truth_url)


def test_a_server_that_does_not_answer_is_given_up(server, monkeypatch):
    monkeypatch.setattr(places, "SECONDS", 0.1)
    told = fails(f"http://ann:secret@{server.place}/silent.csv", "truth.csv")
    assert told == f"http://{server.place}/silent.csv: cannot be read: no answer"


def test_wrong_metrics_are_found_before_anything_is_copied(server):
    with pytest.raises(fastrec.MetricError):
        evaluate_files(f"http://{server.place}/recs.csv", f"http://{server.place}/truth.csv", "no_such_metric")
    assert not server.asked


def test_other_functions_say_that_they_read_no_url(tmp_path):
    with pytest.raises(MissingFileError, match=r"^https://127.0.0.1/report.npz: a URL is not read here; copy it to a"):
        fastrec.load("https://ann:secret@127.0.0.1/report.npz?token=secret")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://ann:secret@host/x{}?token=secret",
        "FTP://ann:secret@host/*{}",
        "s3a://secret@h{}",
        "ftp://ann:pass/secret@host/x{}",
    ],
)
def test_urls_that_are_not_read_are_shown_without_credentials(url, tmp_path, monkeypatch):
    """Also where one is given as a file to write, as a folder or with the name of a system."""
    monkeypatch.chdir(tmp_path)
    truth = tmp_path / "truth.csv"
    truth.write_text("user_id,item_id\n1,2\n")
    csv, report = url.format(".csv"), fastrec.evaluate([[1]], [[1]])
    told = [fails(csv, truth), fails(truth, csv), fails(truth, truth, temp_directory=csv, error=InputError)]
    for save in (report.save, report.to_html):
        for ending in ("", ".fastrec", ".csv"):
            with pytest.raises(InputError) as raised:
                save(url.format(ending))
            told.append(str(raised.value))
    commands = [["evaluate", csv, truth], ["evaluate", truth, truth, "-o", csv], ["evaluate", f"a={csv}", truth]]
    commands.append(["compare", f"{csv}&a=b", f"new={csv}", "--truth", truth])
    told.extend(run_fastrec(*command, "-m", "mrr").stderr for command in commands)
    assert all("//" in text and "secret" not in text for text in told), told


def test_a_scheme_is_short_so_that_a_search_takes_one_pass():
    """Without the bound, a search tries every start of a scheme to its end: n^2 steps for n letters."""
    assert is_any_url(f"{'x' * 31}://shop/key") and not is_any_url(f"{'x' * 32}://shop/key")
    name = "x" * 300_000
    assert shown_url(f"{name}=S3A://ann:secret@shop/key?secret") == f"{name}=s3a://shop/key"


@pytest.mark.parametrize("key", ["/etc/passwd", "*/../../../../../etc/passwd", "a//b*", "./a", "..//"])
def test_paths_of_a_store_stay_in_the_folder_of_copies(key):
    found = fails(f"s3://ann:secret@shop/{key}?region=secret", "truth.csv")
    assert found == f"s3://shop/{key}: expected names between the slashes, not . or .. or none"
    assert "has ::, which would begin" in fails("s3://ann:secret@shop/a::file://etc/passwd", "truth.csv")


def test_urls_on_the_command_line(server, tmp_path):
    for name, table in zip(("recs", "truth"), tables(), strict=True):
        write_table(table, server.folder / f"{name}.csv")
    place = f"http://ann:secret@{server.place}"
    page = tmp_path / "page.html"
    asked = ["evaluate", f"{place}/recs.csv?x=secret", f"{place}/truth.csv", "-m", "mrr"]
    told = run_fastrec(*asked, "--format", "json")
    wanted = evaluate_files(server.folder / "recs.csv", server.folder / "truth.csv", "mrr")
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["metrics"]["mrr"]["mean"] == wanted["mrr"]
    assert run_fastrec(*asked, "-o", page).exit_code == 0
    assert "secret" not in page.read_text() and f"{server.place}/recs.csv" in page.read_text()
    told = run_fastrec("evaluate", f"{place}/none.csv", f"{place}/truth.csv", "-m", "mrr")
    assert told.exit_code == 2 and "secret" not in told.stderr and f"{server.place}/none.csv" in told.stderr
    systems = [f"{place}/recs.csv?x=secret", f"again={place}/recs.csv?x=secret"]
    told = run_fastrec("compare", *systems, "--truth", f"{place}/truth.csv", "-m", "mrr", "--format", "csv")
    assert told.exit_code == 0, told.stderr
    assert "again" in told.stdout and "secret" not in told.stdout + told.stderr


# Object stores


@pytest.fixture(params=["s3", "gs", "az"])
def store(request, monkeypatch):
    with store_of(request.param, monkeypatch) as opened:
        yield opened


def test_options_of_stores():
    """Those of a URL; other ones are in the configuration of fsspec."""
    pytest.importorskip("s3fs")
    files, path = places._open_store("S3://a%2Fb:c@shop/day=*/x?endpoint_override=host:1&scheme=http&region=eu")
    assert (files.key, files.secret, files.endpoint_url, path) == ("a/b", "c", "http://host:1", "shop/day=*/x")
    assert files.client_kwargs == {"region_name": "eu"} and places._open_store("s3://anonymous@shop")[0].anon
    pytest.importorskip("gcsfs")
    assert places._open_store("gs://anonymous@shop/x")[0].storage_options["token"] == "anon"
    pytest.importorskip("adlfs")
    files, path = places._open_store("abfss://shop@host.dfs.core.windows.net/a/b")
    assert (files.account_name, path) == ("host", "shop/a/b")
    pytest.importorskip("huggingface_hub")
    assert places._open_store("hf://datasets/a/b@main/c.parquet")[1] == "datasets/a/b@main/c.parquet"


@pytest.mark.parametrize("scheme", checks.URL_PACKAGES)
def test_a_scheme_without_its_package_is_an_error(monkeypatch, scheme):
    package = checks.URL_PACKAGES[scheme]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as raised:
        evaluate_files(f"{scheme}://shop/recs.csv", "truth.csv", METRICS)
    assert str(raised.value) == f"reading files at URLs of {scheme} needs {package}: pip install 'fastrec-eval[remote]'"


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv.zst"])
def test_a_store_gives_the_bits_of_local_files(store, tmp_path, form):
    recs, truth = tables()
    for nth in range(N_PARTS):
        own = recs.filter(compute.equal(compute.bit_wise_and(recs["user_id"], 3), nth % 4))
        part = own.slice(nth // 4 * (len(own) // 10), len(own) // 10)
        write_table(part, tmp_path / form / f"day={nth % 4}" / f"part-{nth:02}.{form}")
    write_table(truth, tmp_path / form / f"truth.{form}")
    write_table(recs, tmp_path / form / "_drafts" / f"recs.{form}")
    store.upload(tmp_path)
    for pattern in (f"day=*/part-*.{form}", f"day=[0-9]/*.{form}", "day=*"):
        local = tmp_path / form / pattern, tmp_path / form / f"truth.{form}"
        wanted = evaluate_files(*local, METRICS, by="day")
        store.copied.clear()
        urls = store.url(f"{form}/{pattern}"), store.url(f"{form}/truth.{form}")
        found = evaluate_files(*urls, METRICS, by="day")
        assert bits_of(found) == bits_of(wanted) and list(found.groups["day"]) == list(wanted.groups["day"])
        assert len(store.copied) == len({*store.copied}) == N_PARTS + 1
    assert "_drafts" not in "".join(store.copied)


def test_only_what_marks_a_table_is_listed_above_a_folder(store):
    """Not its log, nor other files of a folder called metadata."""
    for name in ("lake/_delta_log/0.json", "metadata/v1.metadata.json", "metadata/notes.json", "lake/day=1/0.parquet"):
        store.put(name, b"")
    files, path = places._open_store(store.url("lake/day=1"))
    found = places._list(files, path)
    assert found == ({"shop/lake/day=1/0.parquet": 0}, ["shop/lake/_delta_log", "shop/metadata/v1.metadata.json"])


def test_a_delta_table_in_a_store(store, tmp_path):
    """Only the log and the files of the current version are copied, and no other way leads into the table."""
    deltalake = pytest.importorskip("deltalake", reason="no deltalake: .ci/full places installs it")
    recs, truth = tables()
    recs = recs.append_column("day", compute.bit_wise_and(recs["user_id"], 3))
    local = tmp_path / "lake" / "recs"
    deltalake.write_deltalake(local, recs.slice(0, 60), partition_by="day")
    deltalake.write_deltalake(local, recs, mode="overwrite", partition_by="day")
    write_table(recs, tmp_path / "iceberg" / "data" / "0.parquet")
    write_table(truth, tmp_path / "iceberg" / "metadata" / "v1.metadata.json")
    write_table(truth, tmp_path / "held.parquet")
    store.upload(tmp_path)
    given = store.url("held.parquet")
    found = evaluate_files(store.url("lake/recs"), given, METRICS, by="day")
    wanted = evaluate_files(local, tmp_path / "held.parquet", METRICS, by="day")
    assert bits_of(found) == bits_of(wanted) and list(found.groups["day"]) == list(wanted.groups["day"])
    n_logs, n_live = 2, len(deltalake.DeltaTable(local).file_uris())
    assert n_live < len(list(local.glob("day=*/*"))) and len(store.copied) == n_logs + n_live + 1
    store.put("my%20recs/_delta_log/0.json", b"{}")
    told = fails(store.url("my%20recs"), given)
    assert (
        told.startswith(f"{store.scheme}://shop/my%20recs: a Delta table is not read if its path")
        and "rename the" in told
    )
    for key in ("lake", "lake/recs/day=1", "lake/recs/*/*.parquet", "lake/recs/day=*", "lake/re*"):
        assert f"is in {store.scheme}://shop/lake/recs, a Delta table, which may keep" in fails(store.url(key), given)
    told = fails(store.url("iceberg"), given)
    assert told.startswith(
        f"{store.scheme}://shop/iceberg: Iceberg tables at URLs are not read; pass the rows to fastrec.evaluate"
    )
    assert f"is in {store.scheme}://shop/iceberg, an Iceberg table" in fails(store.url("iceberg/data/*.parquet"), given)
    one = next(local.glob("day=*/*.parquet")).relative_to(tmp_path).as_posix()
    assert set(evaluate_files(store.url(one), given, METRICS)) == set(METRICS)


def test_errors_of_a_store_name_no_credentials(store, tmp_path):
    recs, truth = tables()
    write_table(
        recs.drop(["rank"]).append_column("rank", pa.nulls(len(recs), pa.int64())), tmp_path / "bad" / "a.parquet"
    )
    write_table(recs, tmp_path / "bad" / "b.parquet")
    write_table(truth, tmp_path / "truth.parquet")
    store.upload(tmp_path)
    store.put("odd/../a.parquet", b"PAR1")
    store.put("void/a.parquet", b"")
    given = store.url("truth.parquet")
    assert (
        fails(store.url("none.parquet"), given, error=MissingFileError)
        == f"{store.scheme}://shop/none.parquet: no such file"
    )
    assert fails(store.url("bad/c*.parquet"), given, error=MissingFileError).startswith(
        f"{store.scheme}://shop/bad/c*.parquet: no"
    )
    assert fails(store.url("bad"), given).startswith(
        f"{store.scheme}://shop/bad: column 'rank' must not be null, found null in "
    )
    assert f"row 1 of {store.scheme}://shop/bad/a.parquet" in fails(store.url("bad"), given)
    assert "the file is empty" in fails(store.url("void"), given)
    assert "cannot be the name of a file" in fails(store.url("odd"), given)
    wrong = store.url("truth.parquet", "no-such-shop")
    assert f"{store.scheme}://no-such-shop/truth.parquet: " in fails(wrong, given)
    told = fails(f"{store.url('x')}{'&' if store.options else '?'}no_such_option=secret", given)
    assert f"x: cannot be read: the options of a URL of {store.scheme} are " in told
