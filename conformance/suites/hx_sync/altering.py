"""The store of a history as others change it: who synchronises the folder, and who damages what lies there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.hx_sync.calls import Calls
from holdfast.conformance.suites.hx_sync.damage import bent, damaged
from holdfast.conformance.suites.hx_sync.drafts import Drafts, lies_of
from holdfast.conformance.suites.hx_sync.history import Step
from holdfast.conformance.suites.hx_sync.model import Segment, Tombstone
from holdfast.conformance.suites.hx_sync.operations import Lies, Manifest, State
from holdfast.conformance.suites.session import SuiteSession


class Altering:
    """Changes the store of one session. What does not apply changes nothing."""

    def __init__(self, session: SuiteSession, drafts: Drafts, calls: Calls) -> None:
        self._session, self._drafts, self._calls = session, drafts, calls
        # The key of the object that the last call has written or found.
        self.wrote: str | None = None
        # Each step that is done here: the state behind it.
        self.steps: Mapping[str, Callable[[Step, State], State]] = {
            "place": self._place,
            "damage": self._damage,
            "mend": self._mend,
            "spoil": self._spoil,
            "unspoil": self._unspoil,
            "litter": self._litter,
            "remove": self._remove,
        }

    def _place(self, step: Step, state: State) -> State:
        made = self._drafts.large(step) if step.how == "large" else self._drafts.any(step)
        if made.key in state.store:
            return state
        self._session.place(made.key, made.data)
        return state.lying(made.key, lies_of(made))

    def _damage(self, step: Step, state: State) -> State:
        """Other bytes take the place of an object, as far as its bytes are known."""
        made = self._drafts.of(step.which)
        if made is None or made.key in self._calls.whole or made.key not in state.store:
            return state
        data = self._session.file(made.key)["bytes"]
        other = self._drafts.of(step.which + 1)
        if data is None or other is None:
            return state
        return self._lying(made.key, data, damaged(step.how, made, from_base64url(data), other), state)

    def _lying(self, key: str, data: str, found: tuple[bytes, Lies] | None, state: State) -> State:
        if found is None:
            return state
        self._calls.whole[key] = from_base64url(data), state.store[key]
        self._session.place(key, found[0])
        return state.lying(key, found[1])

    def _mend(self, step: Step, state: State) -> State:
        made = self._drafts.of(step.which)
        return state if made is None else self._whole(made.key, state)

    def _whole(self, key: str, state: State) -> State:
        if key not in self._calls.whole:
            return state
        data, lies = self._calls.whole.pop(key)
        self._session.place(key, data)
        return state.lying(key, lies)

    def _spoil(self, step: Step, state: State) -> State:
        """What the last call has written or found cannot be opened any more, a manifest too."""
        key = self.wrote
        if key is None or key in self._calls.whole or key not in state.store:
            return state
        data = self._session.file(key)["bytes"]
        return state if data is None else self._lying(key, data, bent(step.how, from_base64url(data)), state)

    def _unspoil(self, _: Step, state: State) -> State:
        """The whole object again, but for a manifest that was written anew."""
        key = self.wrote
        if key is None or key not in state.store:
            return state
        if isinstance(state.store[key].says, Manifest):
            self._calls.whole.pop(key, None)
            return state
        return self._whole(key, state)

    def _litter(self, step: Step, state: State) -> State:
        """A file that a synchroniser leaves beside an object."""
        made = self._drafts.of(step.which)
        if made is None or not made.data:
            return state
        folder, _, name = made.key.rpartition("/")
        stem, _, ending = name.partition(".")
        names = {
            "copy": f"{stem} (conflict copy).{ending}",
            "dotfile": f".{name}",
            "dot folder": f".stversions/{name}",
            "upper case": name.upper(),
            # Nearly as long as a file system takes, so that nothing can be put before or behind it.
            "long": f"{'x' * (240 - len(name))}{name}",
        }
        key = f"{folder}/{names[step.how]}"
        self._session.place(key, made.data)
        return replace(state, foreign=state.foreign | {key})

    def _remove(self, _: Step, state: State) -> State:
        """The object of a tombstone is gone, or that of a segment that has made no blobs."""
        for made in self._drafts.newest():
            is_plain = isinstance(made.says, Tombstone) or (
                isinstance(made.says, Segment) and not made.says.batch.get("artifacts")
            )
            if is_plain and made.key in state.store and made.key not in self._calls.whole:
                self._session.remove(made.key)
                return state.without(made.key)
        return state
