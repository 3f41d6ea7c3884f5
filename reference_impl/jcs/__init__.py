"""The reference of the contract jcs: RFC 8785 from bytes to bytes, or a refusal with a reason and an offset."""
