"""Reads the values of an implementation: from the contract, or from the config of a session."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.reference_impl.session import TEMPLATE_KEY, OpenError
from holdfast.specs import kept_terms

# A run has one config for all its contracts. These keys place the state of some of them.
_OF_OTHERS = (TEMPLATE_KEY, "store", "dsn")
# Enough for every number of a contract, and what is made of one still fits a timedelta.
_MOST_DIGITS = 15


def values_of(contract: str, config: Mapping[str, str], places: Collection[str] = _OF_OTHERS) -> dict[str, Any]:
    """The value of each parameter: that of the session's config, or of the contract. `places` are its other keys.

    Raises OpenError for a key or a number that makes no sense.
    """
    parameters = kept_terms(contract).parameters
    values: dict[str, Any] = {name: parameter.value for name, parameter in parameters.items()}
    for name, text in config.items():
        if name in places:
            continue
        if name not in values:
            named = (TEMPLATE_KEY,) if places is _OF_OTHERS else places
            raise OpenError(f"config {name}: no such key; known keys: {', '.join((*named, *values))}")
        # Without a value in the contract, a horizon is a number, as its unit says, and the address of a broker a text.
        known = parameters[name]
        is_text = isinstance(known.value, str) or (known.value is None and known.unit is None)
        values[name] = text if is_text else _number(name, text)
    return values


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise OpenError(f"config {name}: expected a whole number as text, got {text[:64]!r}")
    return int(text)


def one_of(name: str, text: str, known: Collection[str]) -> str:
    """A setting that has one of a few values. Raises OpenError."""
    if text not in known:
        raise OpenError(f"config {name}: expected one of {', '.join(known)}, got {text[:64]!r}")
    return text
