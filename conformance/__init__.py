"""The harness: adapter protocol, cases, verdicts, evidence and gate."""

# Read by the build as the distribution's version.
__version__ = "0.1.0"
