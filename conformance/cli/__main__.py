"""`python -m conformance.cli` is `holdfast`."""

from conformance.cli import main

main()
