"""The neural lattice language model (Buckman and Neubig 2018)."""
