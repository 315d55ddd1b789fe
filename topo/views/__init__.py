"""What a person or a program reads: text, JSON, findings, pictures; nothing is computed here."""
