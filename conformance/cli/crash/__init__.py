"""`holdfast crash`: what kills, power loss and failing calls cost a store."""
