"""Honest, but greets on standard output first."""

from __future__ import annotations

from honest import Adapter

print("Shelf Server 1.0 (c) ACME", flush=True)
Adapter().run()
