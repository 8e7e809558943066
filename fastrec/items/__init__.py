"""Statistics of lists that follow from data of items, past interactions and other lists."""
