"""A data path laid on a topology: search, choice of card and buffers, verdict, use of resources."""
