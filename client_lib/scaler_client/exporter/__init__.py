"""The command `scaler_exporter`: metrics for Prometheus.

Begin with `server.py`; the metrics themselves are in `monitor/metrics.py`.
May import: errors, commands, protocol, net, monitor.
"""
