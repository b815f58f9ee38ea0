"""What must hold for every input, searched for counter-examples."""
