"""Parts and media as data, every figure with its source; `load` ships them, `read` a user's."""
