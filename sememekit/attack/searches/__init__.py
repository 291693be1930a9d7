"""Searches for adversarial examples."""

SEARCHES: dict[str, str] = {
    "genetic": "sememekit.attack.searches.genetic:Genetic",
    "pso": "sememekit.attack.searches.pso:ParticleSwarm",
    "greedy": "sememekit.attack.searches.greedy:Greedy",
    "beam": "sememekit.attack.searches.beam:Beam",
    "random": "sememekit.attack.searches.random_search:RandomSearch",
    "exhaustive": "sememekit.attack.searches.exhaustive:Exhaustive",
}
"""Name of ``--search`` -> "module:Class"."""

__all__ = ["SEARCHES"]
