"""`holdfast list` and `holdfast explain`: the content of the contracts, and the pages of docs/ made from them."""
