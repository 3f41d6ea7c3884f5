"""The wires around a service, and `holdfast verify --service`."""
