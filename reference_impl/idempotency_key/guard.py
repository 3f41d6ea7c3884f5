"""At most once: the order of the steps around a handler."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.reference_impl.idempotency_key.keys import Keys
from holdfast.reference_impl.idempotency_key.records import Claim, Found, Records
from holdfast.reference_impl.idempotency_key.terms import Answer, Reason, RefusedError, StoreError, problem


@dataclass(frozen=True, slots=True)
class Request:
    """What of a request counts."""

    method: str
    path: str
    query: str
    content_type: str
    body: bytes
    keys: Sequence[bytes]
    principal: str


class Fingerprints:
    """What makes two payloads one."""

    def of(self, request: Request) -> str:
        """The digest of what is fingerprinted, each field after its length."""
        whole = b"".join(b"%d:%s" % (len(each), each) for each in self.fields(request))
        return hashlib.sha256(whole).hexdigest()

    def fields(self, request: Request) -> list[bytes]:
        """What is fingerprinted: all that a handler may look at."""
        texts = (request.method, request.path, request.query, request.content_type)
        return [*(text.encode("utf-8", "surrogateescape") for text in texts), request.body]


class Guard:
    """Runs a handler once for each key."""

    def __init__(self, keys: Keys, fingerprints: Fingerprints, records: Records, now: Callable[[], int]) -> None:
        self.keys, self.fingerprints, self.records, self.now = keys, fingerprints, records, now

    def answer(self, request: Request, handler: Callable[[bytes], Answer]) -> Answer:
        """The answer to a request."""
        try:
            self.check_payload(request.body)
            key = self.keys.of(request.keys)
            claim = self.claim(self.scope(request), key, self.fingerprints.of(request))
        except RefusedError as error:
            return self.refused(error, request, handler)
        except StoreError:
            return self.without_store(request, handler)
        if claim.found is Found.MINE:
            return self.first(request, key, claim.token, handler)
        return self.again(claim, request, handler)

    def refused(self, error: RefusedError, request: Request, handler: Callable[[bytes], Answer]) -> Answer:  # noqa: ARG002
        """What is malformed is not executed."""
        return problem(error.reason, error.detail)

    def check_payload(self, body: bytes) -> None:
        """What is wrong before any handler is refused before the key is claimed. Raises RefusedError."""
        if not body:
            raise RefusedError(Reason.MALFORMED, "expected a body")

    def scope(self, request: Request) -> str:
        """Within what a key is unique. Principals have no blank."""
        return f"{request.principal} {request.path}"

    def claim(self, scope: str, key: str, print_: str) -> Claim:
        """Claim the key. Raises StoreError."""
        return self.records.claim(scope, key, print_, self.now())

    def without_store(self, request: Request, handler: Callable[[bytes], Answer]) -> Answer:  # noqa: ARG002
        """Nothing is done where nothing can be remembered."""
        return problem(Reason.UNAVAILABLE, retry_after=1)

    def first(self, request: Request, key: str, token: str, handler: Callable[[bytes], Answer]) -> Answer:
        """Run the handler, and answer once the answer is stored."""
        answer = self.run(request, handler)
        return self.keep(self.scope(request), key, token, answer)

    def run(self, request: Request, handler: Callable[[bytes], Answer]) -> Answer:
        """The handler's answer. One that threw may have had its effect."""
        try:
            return self.storable(handler(request.body))
        except Exception:  # whatever a handler throws
            return problem(Reason.UNKNOWN)

    def storable(self, answer: Answer) -> Answer:
        """What of an answer a retry gets: nothing that belongs to one exchange or one caller."""
        kept = ("content-type", "location", "etag", "link")
        return Answer(answer.status, tuple(pair for pair in answer.headers if pair[0].lower() in kept), answer.body)

    def keep(self, scope: str, key: str, token: str, answer: Answer) -> Answer:
        """Store an answer. One that cannot be stored is not given: a retry could not repeat it."""
        try:
            self.records.complete(scope, key, token, answer)
        except StoreError:
            return problem(Reason.UNKNOWN)
        return answer

    def again(self, claim: Claim, request: Request, handler: Callable[[bytes], Answer]) -> Answer:  # noqa: ARG002
        """The answer to a request whose key is taken."""
        if claim.found is Found.DONE and claim.answer is not None:
            return claim.answer
        if claim.found is Found.RUNNING:
            return problem(Reason.IN_PROGRESS, retry_after=max(1, min(claim.left_ms // 1000, 60)))
        return problem(Reason.MISMATCH if claim.found is Found.OTHER else Reason.UNKNOWN)
