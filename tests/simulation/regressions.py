"""Seeds that have found something, with what it was.

A change of the plans or of the dice makes a seed another run: then look for one that finds it again with the fault put
back, or leave the old one as one more.
"""

REGRESSIONS: tuple[tuple[int, str], ...] = ()
