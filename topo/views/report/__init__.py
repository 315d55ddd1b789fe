"""The report: one HTML file that shows a machine's answers and asks "what if" by itself."""
