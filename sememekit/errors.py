"""Every error that sememekit raises on purpose.

    SememekitError
    ├── ConfigError       a recipe, a setting, a flag or a name of a variant
    ├── DataError         a corpus, a prepared-data folder, a vocabulary, a lexicon file
    ├── GraphError        a sememe graph, or one that does not fit its vocabulary
    ├── CheckpointError   a run folder that is absent, torn, newer or of another kind
    ├── TrainingError     a run that ended early: non-finite loss, stall
    │   └── RankError     another process of the same training ended
    └── EngineError       a process of an engine ended before its work was done

A message has the problem, the place, the given value, what is allowed and what to type next. The command line prints it on one
line and exits with 1; ``--debug`` shows the traceback. An OSError from writing (a full disk) is raised unchanged, and the
command line adds advice. Any other exception is a bug."""


class SememekitError(Exception):
    """Base of every error that a user can fix."""


class ConfigError(SememekitError):
    """An unknown or invalid recipe, setting or name."""


class DataError(SememekitError):
    """A text, a lexicon or a prepared-data folder cannot be used as it is."""


class GraphError(SememekitError):
    """A sememe graph cannot be built, read, or used with this vocabulary."""


class CheckpointError(SememekitError):
    """A run folder cannot be read or written."""


class TrainingError(SememekitError):
    """Training ended early, since the loss is not finite or does not fall."""


class RankError(TrainingError):
    """Another process of the same training ended, so that no further step is possible."""


class EngineError(SememekitError):
    """A process of an engine ended before its work was done; finished parts are on disk."""
