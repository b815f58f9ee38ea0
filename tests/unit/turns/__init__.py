"""The parts of a turn, one by one."""
