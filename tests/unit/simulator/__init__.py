"""Tests of the simulator: it judges everything else, so it is judged first."""
