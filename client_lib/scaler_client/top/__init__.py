"""The command `scaler_top`: a scheduler in a terminal.

Begin with `screen_state.py` (the shown table, its order, and the keys) and `screen.py` (the screen as lines). Only
`terminal.py` draws with urwid.
May import: errors, commands, protocol, net, monitor.
"""
