"""`holdfast list` and `holdfast explain`: what the contracts hold, and the pages of docs/ made from them."""
