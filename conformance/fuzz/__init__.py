"""What no client should send over HTTP: drawn from the OpenAPI document, and nearly good (docs/http.md)."""
