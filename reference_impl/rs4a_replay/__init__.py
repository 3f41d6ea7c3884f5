"""RS4A-07: a registrar that consumes a logical request once and an authorization nonce once, and fails closed."""
