"""The harness: adapter protocol, cases, verdicts, evidence and gate."""
