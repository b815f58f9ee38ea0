"""The main job, played before the eyes of whoever types `make demo`."""
