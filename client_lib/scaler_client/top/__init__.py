"""The command `scaler_top`: a scheduler in a terminal.

Begin with `view.py` (what is looked at and what keys do) and `screen.py` (the screen as lines). `terminal.py`
has urwid.
May import: errors, commands, protocol, net, monitor.
"""
