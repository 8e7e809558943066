"""Codes shared by the kernels and by the Python that writes their programs. No Numba here."""

from __future__ import annotations

from typing import Final

BLOCK: Final = 512
"""Users per block, so few that the rows of a block stay in the second-level cache."""

UNCUT: Final = 1 << 62
"""A cut-off or a depth that cuts nothing."""

# Operations of a row program; each is five numbers: (code, out, a, b, c).
N_REC: Final = 0  # out = length of the user's list
N_REL: Final = 1  # out = relevant items
COUNTED: Final = 2  # out = 1 where the user counts in means
INCLUDED: Final = 3  # out = 1 where the user counts with a value of its own (not the policy's 0 or NaN)
GIVEN: Final = 4  # out = row a of the given matrix
HITS: Final = 5  # out = hits within cut-off a
HITS_AT: Final = 6  # out = hits within the first min(row b, cut-off a) ranks
ANY_HIT: Final = 7  # out = 1 with a hit within cut-off a, else 0
SERIES: Final = 8  # running sum over hits: kind a, weight table b, gain map c
READ: Final = 9  # out = running sum at cut-off a
READ_MEAN: Final = 10  # out = running sum at cut-off a / hits
READ_PAIRS: Final = 11  # out = share of the pairs (hit, other item) within cut-off a in the right order
SORT_GAINS: Final = 12  # gains in descending order: source a, cut-off b
SORTED_SERIES: Final = 13  # running sum over sorted gains: weight table a, gain map b
READ_SORTED: Final = 14  # out = that sum at position row a, or at the last one
CUMULATIVE: Final = 15  # out = cumulative weights of table a at position row b
# arithmetic from here to BLANK; the kernel compares codes, so their order matters
ADD: Final = 16
SUBTRACT: Final = 17
MULTIPLY: Final = 18
DIVIDE: Final = 19  # 0 / 0 is 0
MINIMUM: Final = 20
SQUARE_ROOT: Final = 21
LOGARITHM: Final = 22  # the natural one
SELECT: Final = 23  # out = row b where row a is not 0, else 0
BLANK: Final = 24  # out = row b where row a is not 0, else NaN
CHECK: Final = 25  # row a must be finite and within limits b
ADD_UP: Final = 26  # add row a, with 0 where row b is 0, to sum c
GIVEN_AT: Final = 27  # out = given number a of events, after the last event of each user within given cut-off b
OP_WIDTH: Final = 5

# rows of the spans of users, int64 (4, n_users)
FIRST_EVENT: Final = 0  # the first hit of a user among the events, after one of rank 0
COUNT: Final = 1  # hits
RELEVANT: Final = 2  # relevant items; with gains, all rows of the truth
LISTED_ROWS: Final = 3

# rows of the events of users, int32 (2, n_events): their hits in rank order, and before them one of rank 0
RANK: Final = 0
SOURCE: Final = 1  # position of the hit among the user's rows of the truth

# rows of their ties, int32 (2, n_events)
ABOVE: Final = 0  # rows of the list with a higher score
TIED_ROWS: Final = 1  # rows with this score

# rows of the bounds of a block's events
START: Final = 0  # where the events of each user start
N_RELEVANT: Final = 1
N_LISTED: Final = 2
SORTED_START: Final = 3  # where the sorted gains of each user start

# kinds of SERIES, by the term that a hit adds; it is the j-th hit of its user, at rank r
WEIGHT: Final = 0  # weight[r]
GAIN_WEIGHT: Final = 1  # gain * weight[r]
PRECISION: Final = 2  # j / r
FIRST: Final = 3  # weight[r] for j = 1
LAST: Final = 5  # weight[r] in place of those above
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

# policies for users who have no relevant item, or no list
SKIP: Final = 0
ZERO: Final = 1
NAN: Final = 2
ERROR: Final = 3
JUDGED: Final = 4  # ZERO with rows in the truth, and a list unless users without one count; else SKIP
LISTED: Final = 5  # ZERO with a list; SKIP without one
UNREAD: Final = 6  # the metric reads no truth: only the list decides

# statistics of a user's scored rows; y is 1 for a positive row, w is the weight of a row, s its score
WEIGHTS: Final = 0  # sum of w
POSITIVES: Final = 1  # sum of w y
NEGATIVES: Final = 2  # sum of w (1 - y)
SCORES: Final = 3  # sum of w s
LOG_LOSS: Final = 4  # sum of w x cross entropy, s clipped to [parameter, 1 - parameter]
BRIER: Final = 5  # sum of w (s - y)^2
SQUARES: Final = 6  # sum of w (s - label)^2
ABSOLUTES: Final = 7  # sum of w |s - label|
TRUE_POSITIVES: Final = 8  # sum of w y where s >= parameter
FALSE_POSITIVES: Final = 9  # sum of w (1 - y) where s >= parameter
ENTROPY: Final = 10  # cross entropy of the base rate x sum of w
GAP: Final = 11  # sum of w (s - y) in one of equally wide bins: parameter = bin + (bins << BIN_BITS)
GAPS: Final = 12  # sum over bins of |gap|: parameter = bins + (norm << BIN_BITS)
BELOW: Final = 13  # sum of w where s < parameter
# statistics that follow from the order of a user's rows
TWICE_WON: Final = 14  # 2 x pairs (positive, negative) in the right order, ties counting as half
CONSTANT: Final = 15  # 1 if all scores are equal
STEP: Final = 16  # average precision x sum of w y, without interpolation
TRAPEZOID: Final = 17
DAVIS_GOADRICH: Final = 18
KOLMOGOROV: Final = 19  # largest distance between the score distributions of the classes
QUANTILE_GAPS: Final = 20  # as GAPS, over bins of equal weight
FIRST_ORDER_STATISTIC: Final = 14
LAST_ORDER_STATISTIC: Final = 20
# statistics of targets (labels as they are) and predictions (scores)
RELATIVE: Final = 21  # sum of w |s - label| / max(|label|, parameter)
DIFFER: Final = 22  # 1 if two labels of rows with weight differ
TARGETS: Final = 23  # sum of w label^parameter
UNEXPLAINED: Final = 24  # sum of w (s - label)^2 over sum of w (label - mean label of the user)^2
STATISTIC_WIDTH: Final = 3
BIN_BITS: Final = 20
"""Low bits of a parameter: of GAP they hold the bin, below the number of bins; else the bins, below the norm."""

# norms of the gaps of bins
SUM: Final = 0  # of |gap|
ROOT: Final = 1  # of the mean of (gap / weight of the bin)^2
LARGEST: Final = 2  # |gap| / weight of a bin

# rules for equal scores
INPUT: Final = 0
WORST: Final = 1
BEST: Final = 2
ID_ASC: Final = 3
ID_DESC: Final = 4
REFUSE: Final = 5
EXPECTED: Final = 6

# outcomes of a block
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
OUT_OF_RANGE: Final = 9  # a value outside [-1, 1]
TIED: Final = 11  # tied scores that the rule refuses, or a metric without a closed form for their mean
OUTSIDE: Final = 12  # a label or a score outside the limits of the metrics
UNFINISHED: Final = 13  # a kernel began a block: what it raises within another kernel does not reach Python

# columns of the counts of users, kept per group and condition
N_EVALUATED: Final = 0
N_NAN: Final = 1
N_NO_TRUTH: Final = 2
N_NO_RECS: Final = 3

# counts for the report, kept per task
COUNT_HITS: Final = 0  # relevant items found anywhere in the list of their user
COUNT_RELEVANT: Final = 1
COUNT_LISTED: Final = 2  # users with relevant items and a list
COUNT_NO_ROWS: Final = 3  # for scored rows: users without rows
COUNT_NO_POSITIVES: Final = 4  # users with rows, none of them positive
COUNT_NO_NEGATIVES: Final = 5
COUNT_CONSTANT: Final = 6  # users with both classes and equal scores
N_DATA_COUNTS: Final = 7

# exact sums
DIGITS: Final = 136
"""Base 2^32 digits of a general sum: covers squares of all doubles."""
GENERAL_SCALE: Final = 2208
"""A general sum counts in steps of 2^-GENERAL_SCALE."""
FIXED_SCALE: Final = 96
"""A fixed-point sum counts in steps of 2^-FIXED_SCALE."""
TARGET_SCALE: Final = 3392
"""A sum of targets counts in steps of 2^-TARGET_SCALE, a multiple of 32: products of three doubles have no less."""
N_TARGET_DIGITS: Final = 208
"""Base 2^32 digits of a sum of targets."""
