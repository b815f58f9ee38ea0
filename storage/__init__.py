"""The ground: what is remembered, and the only doors to the disk, the clock and the dice."""
