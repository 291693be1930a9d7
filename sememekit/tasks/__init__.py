"""Tasks that models are trained for, by name in ``TASKS``."""

TASKS = {
    "classification": "sememekit.tasks.classifier:SingleTextClassifier",
    "dialogue": "sememekit.tasks.seq2seq:DialogueWriter",
    "headline": "sememekit.tasks.headline:HeadlineWriter",
    "language_model": "sememekit.tasks.language_model:LanguageModel",
    "lattice": "sememekit.tasks.lattice.model:Lattice",
    "nli": "sememekit.tasks.classifier:TextPairClassifier",
}
"""name -> "module:Class"; ``--task package.module:Class`` takes a task of your own."""
