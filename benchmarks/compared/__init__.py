"""Scaler beside other systems: the same work on each in turn, on one machine (`make bench-peers`).

`run.py` starts one process for each row of each system, `program.py`, in the environment of that system.
`catalogue.py` lists the systems and the rows, `rows.py` measures, `systems/` has one module for each library.
`page.py` writes the page, the charts and the table of README from the newest result.
"""
