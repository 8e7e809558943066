"""Arguments of calls: their names, types, defaults and documentation, and the signatures made of them."""
