"""The reference of calyx-replay, without any harness."""
