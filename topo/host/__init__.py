"""What a host says of itself: cuFile's configuration and its driver's check."""
