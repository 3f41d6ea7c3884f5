"""`holdfast vectors`: canonicalisation vectors (RFC 8785), and what SDKs make of them."""
