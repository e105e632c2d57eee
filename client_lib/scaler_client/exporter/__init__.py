"""`scaler_exporter`: a scheduler's metrics for Prometheus, without a page."""
