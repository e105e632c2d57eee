"""The command `scaler_ui`: a scheduler as a web page.

Begin with `contract.py` (the messages between server and page) and `live.py` (what is known of the scheduler);
`server.py` and `web.py` are the process and its HTTP side, `static/` is the page.
May import: errors, commands, protocol, net, monitor.
"""
