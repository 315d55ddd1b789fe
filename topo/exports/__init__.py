"""A topology in the formats of other programs; what a format cannot hold is named."""
