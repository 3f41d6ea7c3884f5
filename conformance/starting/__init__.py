"""A new adapter from a template: `holdfast new-adapter`."""
