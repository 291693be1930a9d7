"""Response generation in dialogue."""

from typing import ClassVar, Literal, final

from sememekit.search import BeamSettings
from sememekit.tasks.seq2seq import SequenceToSequence


@final
class DialogueWriter(SequenceToSequence):
    """Responses in a dialogue (Sec. 3.1, Yang et al. 2018): the source is a window of turns, the target the next one."""

    scored_with: ClassVar[Literal["rouge", "bleu"]] = "bleu"

    class Settings(SequenceToSequence.Settings):
        search: BeamSettings = BeamSettings(beam_size=10, num_best=5)
        """How responses are searched for."""
        checkpoint_by: Literal["nll"] = "nll"
        """What the best weights are chosen by on validation: "nll", the likelihood of the references."""
