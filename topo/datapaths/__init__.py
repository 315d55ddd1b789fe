"""The named ways of moving data between storage and GPU, as lists of moves, and their counts."""
