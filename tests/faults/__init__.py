"""Faults put in on purpose: processes killed, files damaged, hostile and mutated input.

``python -m tests.faults`` runs everything (``make faults`` every eighth trial) and prints a table; the tests in here run a
sample of it.

====================  ==========================================================================
``child.py``          command lines in forked children that can be killed before any file-system event
``folders.py``        attacks, seeds, sweeps, pushed runs and results of claims, made of such runs
``runs.py``           small data, graphs and runs, made by the command line itself
``kill.py``           SIGKILL before every event, then the command again: is the result equal to a quiet run's?
``corrupt.py``        every file of data, graph and run damaged in every way: refused, right, or silently other?
``hostile.py``        pickles, deep JSON, huge numbers, names of functions in every file: is anything executed?
``parsers.py``        every reader of files, with a file that it reads and mutants of it
``table.py``          what was found, as a table
====================  ==========================================================================
"""
