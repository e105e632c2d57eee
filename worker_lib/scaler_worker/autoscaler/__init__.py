"""The command `scaler_autoscaler`: starts and ends hosts of pools, as many as a scheduler's work needs.

Begin with `service.py` (the loop). The decisions are in scaler_client's `autoscale/`; `providers.py` says what a
provider does, and `local.py`, `command.py`, `ssh.py`, `slurm.py` and `kubernetes_pods.py` are the providers.
May import: config.
"""
