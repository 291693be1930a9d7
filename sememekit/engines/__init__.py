"""Engines: where functions run in other processes, on this machine or on others; one file each, imported when it is used."""

ENGINES = {
    "dask": "sememekit.engines.dask:Dask",
    "local": "sememekit.engines.local:Local",
    "slurm": "sememekit.engines.slurm:Slurm",
}
"""Name of ``--engine`` -> "module:Class"."""

__all__ = ["ENGINES"]
