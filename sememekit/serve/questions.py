"""Requests of clients: a class for each request, with limits of texts and numbers.

No field names a file, a folder or code. A run is named as ``GET /v1/runs`` lists it."""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from sememekit.config import LARGEST_SEED

LONGEST_CONTEXT: Final = 2_000
LONGEST_TEXT: Final = 20_000  # most characters of a context, and of a text; longer ones are refused
LONGEST_TAGGED: Final = 2_000  # of a text for tag, which costs far more a character than score
_CONTROL: Final = re.compile(r"[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]")


def _without_controls(text: str) -> str:
    """Refuse control characters other than tabs and line ends."""
    if found := _CONTROL.search(text):
        raise ValueError(f"control character U+{ord(found[0]):04X} at {found.start()}; take it out")
    return text


def _whole(number: Any) -> Any:
    """Take 30.0 for 30, as JSON Schema does."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


_Plain = AfterValidator(_without_controls), Field(json_schema_extra={"pattern": f"^{_CONTROL.pattern.replace('[', '[^')}*$"})
Name = Annotated[str, StringConstraints(min_length=1, max_length=200), *_Plain]
Context = Annotated[str, StringConstraints(max_length=LONGEST_CONTEXT), *_Plain]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT), *_Plain]
Whole = Annotated[int, BeforeValidator(_whole)]
Top = Annotated[int, Field(ge=1, le=100), BeforeValidator(_whole)]


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
    """Sememes to add."""
    remove: list[Name] = Field(default=[], max_length=50)
    """Sememes to remove."""


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
    """Words with blanks between, or Chinese text."""
    top: Top = 10
    """Number of words."""


class ScoreQuestion(WithChanges):
    """The surprisal of each word of a text, a sentence a line."""

    text: Text
    """The text, a sentence a line."""
    carry: bool = False
    """Read the lines as one text."""


class TagQuestion(OfRun):
    """The senses of the words of a text, a sentence a line."""

    text: Annotated[Text, StringConstraints(max_length=LONGEST_TAGGED)]
    """The text, a sentence a line."""
    words: list[Name] = Field(default=[], max_length=100)
    """Words to tag; empty for all."""
    method: Literal["combined", "substitution", "usual", "share", "lift"] = "combined"
    """Method of ``sememekit tag``."""


class ExplainQuestion(WithChanges):
    """A question for the explanation of an answer."""

    text: Context
    """A context, a text to classify, a raw sentence, or a source text, by the kind of run."""
    others: list[Context] = Field(default=[], max_length=4)
    """Further texts of an example of a classifier."""
    top: Top = 10
    """Number of words."""
    top_sememes: Top = 12
    """Number of sememes."""
    word: Name | None = None
    """A word after the context, whose senses are shown as well."""
    right: Context = ""
    """The words after that word."""
    label: Name | None = None
    """Explained label of a classifier. Default: the most probable."""


class SegmentQuestion(OfRun):
    """The words of raw text, a sentence a line."""

    text: Text
    """Raw text, a sentence a line."""
    decoding: Literal["viterbi", "posterior"] = "viterbi"
    """The best path, or a decision at each boundary."""


class PredictQuestion(OfRun):
    """The labels of examples; each is a list of its texts."""

    examples: list[Annotated[list[Context], Field(min_length=1, max_length=5)]] = Field(min_length=1, max_length=64)
    """The examples, each a list of its texts."""


class GenerateQuestion(OfRun):
    """A continuation of a prompt, or a text for a source."""

    prompt: Context = ""
    """The first words, or the source text."""
    num_tokens: Whole = Field(default=30, ge=1, le=500)
    """Number of words to draw."""
    temperature: float = Field(default=1.0, ge=0.0, le=100.0)
    """Divisor of the logits; 0 takes the most probable word."""
    top_k: Whole = Field(default=0, ge=0, le=1_000_000)
    """Draw from the k most probable words; 0 for all."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Draw from the most probable words that add up to p."""
    stop: list[Name] = Field(default=[], max_length=100)
    """Words that end the text."""
    unknown: bool = False
    """True if ``<unk>`` may be drawn."""
    seed: Whole = Field(default=1, ge=0, le=LARGEST_SEED)
    """Random seed."""
    num_best: Whole = Field(default=1, ge=1, le=20)
    """Number of texts from the search, for headlines and dialogue; at most the beam size."""


class Shape(Question):
    """A text at a point; or without text an outline, filled if ``size`` is 0, otherwise a line of this width (font size of
    text: 14). ``points`` are x and y of each point from left and top."""

    points: list[Annotated[float, Field(ge=0.0, le=10_000.0)]] = Field(min_length=2, max_length=100)
    """x and y of each point, from left and top."""
    text: Context = ""
    """Text at the point; empty for an outline."""
    size: float = Field(default=0.0, ge=0.0, le=100.0)
    """Font size of a text, or width of a line; 0 for 14, or a filled outline."""
    anchor: Literal["left", "center", "right"] = "left"
    """Side of the text that is at the point."""
    colour: Annotated[str, StringConstraints(pattern="^#[0-9a-f]{6}$")]
    """Colour as ``#rrggbb``."""
    opacity: float = Field(default=1.0, ge=0.0, le=1.0)
    """Opacity of an outline."""


class PdfQuestion(Question):
    """A drawing of the page to save as PDF; lengths are in points."""

    width: float = Field(ge=1.0, le=10_000.0)
    """Width in points."""
    height: float = Field(ge=1.0, le=10_000.0)
    """Height in points."""
    shapes: list[Shape] = Field(min_length=1, max_length=3_000)
    """The drawing, from back to front."""


class SememeQuestion(WithChanges):
    """The words and the neighbours of a sememe."""

    sememe: Name
    """Name of the sememe."""


class WordQuestion(WithChanges):
    """The annotation of a word."""

    word: Name
    """The word."""


class UnannotatedQuestion(OfRun):
    """Words without annotation, the most frequent first, with suggested sememes."""

    top: Top = 30
    """Number of words."""


class SaveQuestion(WithChanges):
    """Changes to save as overlay, table and diff."""


class AttackQuestion(OfRun):
    """An attack on one example of a classifier."""

    texts: list[Context] = Field(min_length=1, max_length=5)
    """The texts of the example."""
    label: Name | None = None
    """The true label. Default: the label that the model gives."""
    search: Literal["greedy", "genetic", "pso", "random"] = "greedy"
    """Search of ``sememekit attack``."""
    query_budget: Whole = Field(default=2_000, ge=1, le=20_000)
    """Most queries to the classifier."""


class RatingQuestion(OfRun):
    """A person's rating of a substitute."""

    text: Context
    """The text before the attack."""
    changed: Context
    """The text with all substitutes."""
    old: Name
    """The replaced word."""
    new: Name
    """Its substitute."""
    same_meaning: bool
    """True if the text means the same."""
    fluent: bool
    """True if the text is fluent."""
