"""Answers as text: pages of headings, sentences and plain tables; one file a subject."""
