"""The questions people ask: compare, what binds and what next, when all is done, what to change."""
