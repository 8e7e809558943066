"""Codes shared by the kernels and by the Python that writes their programs. No Numba here."""

from __future__ import annotations

from typing import Final

BLOCK: Final = 512
"""Users per block: the rows of a block stay in the processor's second cache."""

# What an operation of a row program does; its five numbers are (code, out, a, b, c).
N_REC: Final = 0  # out = length of the user's list
N_REL: Final = 1  # out = relevant items
COUNTED: Final = 2  # out = 1 where the user counts in means
INCLUDED: Final = 3  # out = 1 where the user counts with a value of its own (not the policy's 0 or NaN)
GIVEN: Final = 4  # out = row a of the matrix handed in
HITS: Final = 5  # out = hits within cut-off a
HITS_AT_N_REL: Final = 6  # out = hits within the first min(n_rel, cut-off a) ranks
SERIES: Final = 7  # running sum over hits: kind a, weight table b, gain map c
READ: Final = 8  # out = running sum at cut-off a
SORT_GAINS: Final = 9  # gains in descending order: source a, cut-off b
SORTED_SERIES: Final = 10  # running sum over sorted gains: weight table a, gain map b
READ_SORTED: Final = 11  # out = that sum at position row a, or at the last one
CUMULATIVE: Final = 12  # out = cumulative weights of table a at position row b
# from here on arithmetic, up to SELECT; the kernel tells leaves from it by the order of these numbers
ADD: Final = 13
MULTIPLY: Final = 14
DIVIDE: Final = 15  # 0 / 0 is 0
MINIMUM: Final = 16
SQUARE_ROOT: Final = 17
SELECT: Final = 18  # out = row b where row a is not 0, else 0
CHECK: Final = 19  # row a must be finite and within limits b
OP_WIDTH: Final = 5

# kinds of SERIES: what a hit at rank r, the j-th of its user, adds
WEIGHT: Final = 0  # weight[r]
GAIN_WEIGHT: Final = 1  # gain * weight[r]
PRECISION: Final = 2  # j / r
FIRST: Final = 3  # weight[r] for j = 1
CASCADE: Final = 4  # weight[r] * stop probability * product of (1 - stop probability) above

# sources of SORT_GAINS
FROM_TRUTH: Final = 0
FROM_LIST: Final = 1
FROM_CUT_LIST: Final = 2

# kinds of gain map; a map is (kind, parameter)
LINEAR: Final = 0
EXP2: Final = 1
TABLE: Final = 2
STOP: Final = 3

# what is done with users who have no relevant item, or no list
SKIP: Final = 0
ZERO: Final = 1
NAN: Final = 2
ERROR: Final = 3

# how a block ended
FINE: Final = 0
DUPLICATE_REC: Final = 1
DUPLICATE_TRUTH: Final = 2
NEGATIVE_REC: Final = 3
NEGATIVE_TRUTH: Final = 4
USER_NO_TRUTH: Final = 5
USER_NO_RECS: Final = 6
OUT_OF_LIMITS: Final = 7
OVERFLOW: Final = 8
SMALL_CATALOGUE: Final = 10  # list and truth hold more items than the catalogue
OUT_OF_RANGE: Final = 9  # a value that should be within [-1, 1]

# columns of the counts kept per group and view
N_EVALUATED: Final = 0
N_NAN: Final = 1
N_NO_TRUTH: Final = 2
N_NO_RECS: Final = 3

# facts about the data, kept per bin
FACT_HITS: Final = 0  # relevant items found anywhere in the list of their user
FACT_RELEVANT: Final = 1
FACT_LISTED: Final = 2  # users with relevant items and a list

# exact sums
DIGITS: Final = 136
"""Base 2^32 digits of a general sum: covers squares of all doubles."""
GENERAL_SCALE: Final = 2208
"""A general sum counts in steps of 2^-GENERAL_SCALE."""
FIXED_SCALE: Final = 96
"""A fixed-point sum counts in steps of 2^-FIXED_SCALE."""
