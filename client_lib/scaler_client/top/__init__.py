"""scaler_top: a scheduler, its workers, functions and clients in a terminal."""
