"""Requests of clients: a class for each request, with limits of texts and numbers.

No field names a file, a folder or code. A run is named as ``GET /v1/runs`` lists it."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from sememekit.config import LARGEST_SEED

LONGEST_CONTEXT: Final = 2_000
LONGEST_TEXT: Final = 20_000  # most characters of a context, and of a text; longer ones are refused with 413
LONGEST_TAGGED: Final = 2_000  # of a text for tag, which costs a hundred times as much a character as score
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def _without_controls(text: str) -> str:
    """Refuse control characters other than tabs and line ends."""
    if found := _CONTROL.search(text):
        raise ValueError(f"control character U+{ord(found[0]):04X} at {found.start()}; take it out")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_without_controls)]
Context = Annotated[str, StringConstraints(max_length=LONGEST_CONTEXT), AfterValidator(_without_controls)]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT), AfterValidator(_without_controls)]
Top = Annotated[int, Field(ge=1, le=100)]


class Question(BaseModel):
    """Base of all requests: unknown keys and values of another type are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True, protected_namespaces=()
    )


class GivenChange(Question):
    """A change of the sememes of a sense."""

    sense: Name
    """WORD#NUMBER, or WORD where it has one sense."""
    add: list[Name] = Field(default=[], max_length=50)
    remove: list[Name] = Field(default=[], max_length=50)


class OfRun(Question):
    """Base of requests about one run."""

    run: Name
    """Name of a run, as /v1/runs lists it."""


class WithChanges(OfRun):
    """Base of requests that may change the annotation."""

    changes: list[GivenChange] = Field(default=[], max_length=50)
    """Changes of annotations, applied in order without training."""


class NextWordsQuestion(WithChanges):
    """A question for the words after a context."""

    context: Context
    top: Top = 10


class ScoreQuestion(WithChanges):
    """The surprisal of each word of a text, a sentence a line."""

    text: Text
    carry: bool = False
    """Read the lines as one text."""


class TagQuestion(OfRun):
    """The senses of the words of a text, a sentence a line."""

    text: Annotated[Text, StringConstraints(max_length=LONGEST_TAGGED)]
    words: list[Name] = Field(default=[], max_length=100)
    """Words to tag; empty for all."""
    method: Literal["combined", "substitution", "usual", "share", "lift"] = "combined"


class ExplainQuestion(WithChanges):
    """A question for the explanation of an answer."""

    text: Context
    """A context, a text to classify, a raw sentence, or a source text, by the kind of run."""
    others: list[Context] = Field(default=[], max_length=4)
    """Further texts of an example of a classifier."""
    top: Top = 10
    top_sememes: Top = 12
    word: Name | None = None
    """A word after the context, whose senses are shown as well."""
    right: Context = ""
    """The words after that word."""
    label: Name | None = None
    """Explained label of a classifier. Default: the most probable."""


class SegmentQuestion(OfRun):
    """The words of raw text, a sentence a line."""

    text: Text
    decoding: Literal["viterbi", "posterior"] = "viterbi"


class PredictQuestion(OfRun):
    """The labels of examples; each is a list of its texts."""

    examples: list[Annotated[list[Context], Field(min_length=1, max_length=5)]] = Field(min_length=1, max_length=64)


class GenerateQuestion(OfRun):
    """A continuation of a prompt, or a text for a source."""

    prompt: Context = ""
    num_tokens: int = Field(default=30, ge=1, le=500)
    temperature: float = Field(default=1.0, ge=0.0, le=100.0)
    top_k: int = Field(default=0, ge=0, le=1_000_000)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    stop: list[Name] = Field(default=[], max_length=100)
    unknown: bool = False
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    num_best: int = Field(default=1, ge=1, le=20)
    """Number of texts from the search, for headlines and dialogue; at most the beam size."""


class Shape(Question):
    """A text at a point; or without text an outline, filled if ``size`` is 0, otherwise a line of this width (font size of
    text: 14). ``points`` are x and y of each point from left and top."""

    points: list[Annotated[float, Field(ge=0.0, le=10_000.0)]] = Field(min_length=2, max_length=100)
    text: Context = ""
    size: float = Field(default=0.0, ge=0.0, le=100.0)
    anchor: Literal["left", "center", "right"] = "left"
    colour: Annotated[str, StringConstraints(pattern="^#[0-9a-f]{6}$")]
    opacity: float = Field(default=1.0, ge=0.0, le=1.0)


class PdfQuestion(Question):
    """A drawing of the page to save as PDF; lengths are in points."""

    width: float = Field(ge=1.0, le=10_000.0)
    height: float = Field(ge=1.0, le=10_000.0)
    shapes: list[Shape] = Field(min_length=1, max_length=3_000)


class SememeQuestion(WithChanges):
    """The words and the neighbours of a sememe."""

    sememe: Name


class WordQuestion(WithChanges):
    """The annotation of a word."""

    word: Name


class UnannotatedQuestion(OfRun):
    """Words without annotation, the most frequent first, with suggested sememes."""

    top: Top = 30


class SaveQuestion(WithChanges):
    """Changes to save as overlay, table and diff."""


class AttackQuestion(OfRun):
    """An attack on one example of a classifier."""

    texts: list[Context] = Field(min_length=1, max_length=5)
    label: Name | None = None
    """The true label. Default: the label that the model gives."""
    search: Literal["greedy", "genetic", "pso", "random"] = "greedy"
    query_budget: int = Field(default=2_000, ge=1, le=20_000)


class RatingQuestion(OfRun):
    """A person's rating of a substitute."""

    text: Context
    """The text before the attack."""
    changed: Context
    """The text with all substitutes."""
    old: Name
    new: Name
    same_meaning: bool
    fluent: bool
