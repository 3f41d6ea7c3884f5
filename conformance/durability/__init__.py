"""Faults against a contract: crashes, power loss and lost dependencies, by what `faults.yaml` says of workloads."""
