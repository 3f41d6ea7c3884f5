"""Vectors of JSON canonicalisation (RFC 8785): construction, Spark jobs, streams, frames and SDK runners."""
