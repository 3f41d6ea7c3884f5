"""Ends with status 0 and has done nothing: success on paper."""
