"""Why an adapter does not speak the protocol."""
