def gate() -> None:
    """Decide."""
