"""Pictures of machines: what hangs on what, and which way the data goes."""
