"""The command `scaler_top`: a scheduler in a terminal.

Begin with `screen_state.py` (what is shown, and the keys) and `screen.py` (the screen as lines). Only `terminal.py`
draws with urwid.
May import: errors, commands, protocol, net, monitor.
"""
