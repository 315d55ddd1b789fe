"""The command line: one file a verb, imported when it is called."""
