"""Engines run functions in other processes, on this machine or others; each is a file that is imported when used."""

ENGINES = {
    "dask": "sememekit.engines.dask:Dask",
    "local": "sememekit.engines.local:Local",
    "slurm": "sememekit.engines.slurm:Slurm",
}
"""Name of ``--engine`` -> "module:Class"."""
