"""`scaler_ui`: what goes on, in a browser. Python that serves the page, and the page in static/."""
