"""The reference of `idempotency-key`: a service on FastAPI that keeps its keys in SQLite or PostgreSQL."""
