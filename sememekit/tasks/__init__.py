"""What models are trained for: one file each, found by name in ``TASKS``."""

TASKS = {
    "language_model": "sememekit.tasks.language_model:LanguageModel",
}
"""name -> "module:Class"; ``--task package.module:Class`` takes a task of your own."""

__all__ = ["TASKS"]
