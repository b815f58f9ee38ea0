"""What survives a kill, a power cut, a full disk, and a failing file."""
