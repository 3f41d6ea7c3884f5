"""Near misses by kind of value: data in `catalogue.yaml`, each with its source, and what makes them of a good value."""

from holdfast.vectors.neighbours.catalogue import Neighbour, neighbours

__all__ = ["Neighbour", "neighbours"]
