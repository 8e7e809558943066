"""Object stores in memory, which fsspec takes for those of a scheme."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def store_of(scheme: str, patch: pytest.MonkeyPatch) -> Iterator["Store"]:
    """Have fsspec open a new store with one bucket, `shop`, for all URLs of a scheme."""
    registry = pytest.importorskip("fsspec.registry", reason="no fsspec: .ci/full places installs it")
    from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

    from fastrec.checks import URL_PACKAGES

    class Files(MemoryFileSystem):
        protocol = scheme
        store, pseudo_dirs, copied = {}, [], []

        @classmethod
        def _strip_protocol(cls, path):
            return path.removeprefix(f"{scheme}://").rstrip("/")

        def get_file(self, rpath, lpath, **options):
            self.copied.append(rpath)
            super().get_file(rpath, lpath, **options)

    def put(key: str, body: bytes) -> None:
        Files.store[f"shop/{key}"] = MemoryFile(None, f"shop/{key}", body)

    patch.setitem(URL_PACKAGES, scheme, "fsspec")
    patch.setitem(registry._registry, scheme, Files)
    yield Store(scheme, put, Files.copied)


class Store:
    """A store: how to put an object there, how to name it, and which were copied."""

    def __init__(self, scheme, put, copied):
        self.scheme, self.put, self.copied = scheme, put, copied
        self.user = {"s3": "ann:secret@", "gs": "anonymous@"}.get(scheme, "")
        self.options = {"s3": "?scheme=http&endpoint_override=127.0.0.1:1&region=secret"}.get(scheme, "")

    def url(self, key, bucket="shop"):
        return f"{self.scheme}://{self.user}{bucket}/{key}{self.options}"

    def upload(self, folder: Path):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(path.relative_to(folder).as_posix(), path.read_bytes())
