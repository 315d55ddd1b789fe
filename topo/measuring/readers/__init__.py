"""Result files, one program a file: `read(data, name)` gives what it tells."""
