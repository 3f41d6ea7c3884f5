"""The reference of the contract mesh-delivery: so far the request fingerprint, with every guard a method of its own."""
