"""Scripts on packages of others, written as their READMEs show; none knows of Ferryman."""
