"""`python -m holdfast.conformance.cli` is `holdfast`."""

from holdfast.conformance.cli import main

main()
