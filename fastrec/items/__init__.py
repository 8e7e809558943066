"""Statistics of lists that follow from data of items, past interactions, other lists and judgements."""
