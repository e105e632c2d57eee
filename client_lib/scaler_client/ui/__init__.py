"""The command `scaler_ui`: a scheduler as a web page.

Begin with `contract.py` (the messages between server and page) and `live_state.py` (the known state of the scheduler).
`server.py` is the process, `web_application.py` its HTTP side, `static/` the page.
May import: errors, commands, protocol, net, monitor.
"""
