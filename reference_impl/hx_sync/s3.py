"""The store in an S3 bucket (source section 6): a conditional put is atomic, and never in place of another object."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from holdfast import install_line
from holdfast.reference_impl.hx_sync.layout import Layout, begins
from holdfast.reference_impl.hx_sync.storage import Listing, Put, TooLargeError
from holdfast.reference_impl.sqlite import StoreError, UncertainError

_SCHEME = "s3"
# HTTP: the object is there; another writer of the same key is at work.
_TAKEN, _CONFLICT = "PreconditionFailed", "ConditionalRequestConflict"
_ABSENT = ("NoSuchKey", "404")
# The answers with which S3 has certainly not done the request.
_REFUSED_BELOW = 500


def split_url(url: str) -> tuple[str, str]:
    """Bucket and prefix of `s3://BUCKET/PREFIX`. Raises ValueError."""
    found = urlsplit(url)
    if found.scheme != _SCHEME or not found.netloc or found.query or found.fragment:
        raise ValueError(f"expected a store like s3://bucket/prefix, got {url!r}")
    return found.netloc, found.path.strip("/")


def connected(url: str, layout: Layout, *, max_object_bytes: int) -> S3Store:
    """A store with the credentials and the endpoint of boto3's usual configuration. Raises ValueError."""
    bucket, prefix = split_url(url)
    try:
        # Imported here, so that only its users wait for the import.
        import boto3
    except ImportError as error:
        raise ValueError(f"a store in S3 needs boto3: `{install_line('hx')}`") from error
    return S3Store(boto3.client("s3"), bucket, prefix, layout, max_object_bytes=max_object_bytes)


class S3Store:
    """Implements `storage.Store` on a client of boto3."""

    def __init__(self, client: Any, bucket: str, prefix: str, layout: Layout, *, max_object_bytes: int) -> None:
        """`prefix` comes before every key."""
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._layout = layout
        self._most = max_object_bytes

    def check(self) -> None:
        """See `Store`."""
        with self._asked():
            self._client.head_bucket(Bucket=self._bucket)

    def make(self) -> None:
        """See `Store`. A bucket is made by its owner, and a vault in it needs no folders."""
        self.check()

    def list(self, prefix: str) -> Listing:
        """See `Store`. A key outside our layout is a stray."""
        with self._asked():
            # S3 compares characters. This code checks that the prefix ends with a whole part of the path.
            found = [
                name.removeprefix(self._prefix)
                for name in self.names(f"{self._prefix}{prefix.rstrip('/')}")
                if name.startswith(self._prefix)
            ]
        within = [key for key in found if begins(key, prefix)]
        keys = {key for key in within if self._layout.is_finished(key)}
        # A key that ends with / is a folder that a console has made.
        odd = {key for key in within if key.startswith(f"{self._layout.objects}/") and not key.endswith("/")} - keys
        return Listing(sorted(keys), sorted(odd))

    def names(self, prefix: str) -> Iterator[str]:
        """All names that begin so, of every page."""
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
            for each in page.get("Contents", ()):
                yield each["Key"]

    def get(self, key: str) -> bytes | None:
        """See `Store`."""
        if not self._layout.is_object(key):
            return None
        with self._asked():
            return self._get(key)

    def _get(self, key: str) -> bytes | None:
        from botocore.exceptions import ClientError

        try:
            found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _ABSENT:
                return None
            raise
        with contextlib.closing(found["Body"]) as body:
            if found["ContentLength"] > self._most:
                raise TooLargeError(f"expected at most {self._most} bytes, got {found['ContentLength']}")
            data: bytes = body.read()
        return data

    def put_atomic(self, key: str, data: bytes) -> Put:
        """See `Store`."""
        from botocore.exceptions import ClientError

        if (found := self.compare(key, data)) is not None:
            return found
        try:
            self._written(lambda: self.write(key, data))
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in (_TAKEN, _CONFLICT):
                raise StoreError(f"{key}: {error}") from error
            # Another writer was faster, or this is the second try of a put whose answer was lost.
            if (found := self.compare(key, data)) is not None:
                return found
            raise StoreError(f"{key}: another writer is at work: {error}") from error
        except UncertainError:
            if (found := self.compare(key, data)) is None:
                raise
            return Put.NEW if found is Put.SAME else found
        return Put.NEW

    def write(self, key: str, data: bytes) -> None:
        """One request that stores all of it where nothing is. Raises ClientError where something is."""
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data, IfNoneMatch="*")

    def compare(self, key: str, data: bytes) -> Put | None:
        """What lies at the key already; None if nothing does. Raises StoreError."""
        with self._asked():
            try:
                found = self._get(key)
            except TooLargeError:
                return Put.OTHER
        if found is None:
            return None
        return Put.SAME if found == data else Put.OTHER

    def replace(self, key: str, data: bytes) -> None:
        """See `Store`."""
        from botocore.exceptions import ClientError

        try:
            self._written(lambda: self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data))
        except ClientError as error:
            raise StoreError(f"{key}: {error}") from error

    def _written(self, put: Callable[[], None]) -> None:
        """Raises ClientError where S3 refused, UncertainError where it is unknown."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            put()
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= _REFUSED_BELOW:
                raise UncertainError(f"the store did not say whether it wrote: {error}") from error
            raise
        except BotoCoreError as error:
            raise UncertainError(f"the store did not say whether it wrote: {error}") from error

    def settle(self, key: str, data: bytes) -> None:
        """See `Store`. What S3 shows is durable."""

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            raise StoreError(f"the store s3://{self._bucket}/{self._prefix}: {error}") from error
