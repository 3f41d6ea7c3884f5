"""Reference implementation of `m5-log` on RocksDB: a signed log, its order, its state, its checkpoints."""
