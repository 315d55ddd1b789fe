"""Answers as JSON documents: units in the names, unknown is null and listed."""
