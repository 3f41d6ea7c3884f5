"""Expected bytes and keys, computed independently of every implementation under test."""
