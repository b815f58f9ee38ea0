"""How fast it is, each figure beside its peer measured in the same run."""
