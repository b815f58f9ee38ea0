"""The parts of the door from the internet, one by one."""
