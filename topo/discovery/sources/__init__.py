"""What other tools and operating systems write of a machine, one tool a file."""
