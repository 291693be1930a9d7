"""How ``reproduce run`` runs the steps of a claim."""
