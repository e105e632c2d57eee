"""`scaler_client`: what a person at a prompt asks a scheduler for."""
