"""`holdfast vectors`: canonicalisation vectors (RFC 8785), and the results of SDKs on them."""
