"""A new adapter or contract from a template: `holdfast new-adapter`, `holdfast new-contract`."""
