"""Options of calls, written out once, and their copies in the functions that share them."""
