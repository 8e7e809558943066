"""Local servers of S3 and of Google Cloud Storage with one bucket, `shop`."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

WHY = "not installed: .ci/full places installs it"


class Store(NamedTuple):
    """A running server of a store: how to put an object there, and how to name it."""

    scheme: str
    user: str  # the part of a URL before @
    options: str  # the query of every URL
    put: Callable[[str, bytes], object]

    def url(self, key, bucket="shop"):
        return f"{self.scheme}://{self.user}@{bucket}/{key}?{self.options}"

    def upload(self, folder):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(path.relative_to(folder).as_posix(), path.read_bytes())


@contextlib.contextmanager
def s3() -> Iterator[Store]:
    server = pytest.importorskip("moto.server", reason=WHY)
    boto3 = pytest.importorskip("boto3", reason=WHY)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        place = "{}:{}".format(*running.get_host_and_port())
        keys = {"aws_access_key_id": "ann", "aws_secret_access_key": "secret"}
        client = boto3.client("s3", endpoint_url=f"http://{place}", region_name="us-east-1", **keys)
        client.create_bucket(Bucket="shop")
        options = f"scheme=http&endpoint_override={place}&region=us-east-1"
        yield Store("s3", "ann:secret", options, lambda key, body: client.put_object(Bucket="shop", Key=key, Body=body))
    finally:
        running.stop()


@contextlib.contextmanager
def gs() -> Iterator[Store]:
    server = pytest.importorskip("gcp_storage_emulator.server", reason=WHY)
    from pyarrow.fs import GcsFileSystem

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = server.create_server("127.0.0.1", port, in_memory=True, default_bucket="shop")
    running.start()
    try:
        place = f"127.0.0.1:{port}"
        files = GcsFileSystem(anonymous=True, scheme="http", endpoint_override=place)

        def put(key: str, body: bytes) -> None:
            with files.open_output_stream(f"shop/{key}", compression=None) as stream:
                stream.write(body)

        yield Store("gs", "anonymous", f"scheme=http&endpoint_override={place}", put)
    finally:
        running.stop()


STORES = {"s3": s3, "gs": gs}
