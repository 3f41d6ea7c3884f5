"""Near misses by kind of value: data in `catalogue.yaml`, each with its source, and what makes them of a good value."""

from holdfast.vectors.neighbours.catalogue import Neighbour, neighbour, neighbours

__all__ = ["Neighbour", "neighbour", "neighbours"]
