"""Substitutes out of a JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from pydantic import Field

from sememekit.attack.candidates.base import Candidates
from sememekit.errors import DataError
from sememekit.files import at_home, read_bytes


@final
class TableCandidates(Candidates):
    """``{word: [substitute, ...]}``, or ``{word: {part of speech: [substitute, ...]}}`` as DictSKB's files have it."""

    class Settings(Candidates.Settings):
        path: str
        """A JSON file of words and their substitutes."""
        most: int = Field(default=0, ge=0)
        """Substitutes a word; 0 for all."""

    settings: TableCandidates.Settings

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        path = at_home(self.settings.path)
        data = read_bytes(path, DataError)
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not JSON: {error}") from None
        if not isinstance(content, dict):
            raise DataError(
                f"{path}: a table of substitutes is an object, word -> substitutes, and this is {type(content).__name__}"
            )
        self.hashes = {Path(self.settings.path).name: hashlib.sha256(data).hexdigest()}
        return {
            word: self.usable(word, _strings(content[word], word, path), self.settings.most)
            for word in dict.fromkeys(words)
            if word in content
        }


def _strings(found: Any, word: str, path: Path) -> Iterator[str]:
    for part in found.values() if isinstance(found, dict) else (found,):
        if not isinstance(part, list) or not all(isinstance(item, str) for item in part):
            raise DataError(f"{path}: the substitutes of {word!r} must be a list of words, or lists by part of speech")
        for item in part:
            if any("\ud800" <= letter <= "\udfff" for letter in item):
                raise DataError(f"{path}: a substitute of {word!r} holds half a surrogate pair: {item!a}; take it out")
            yield item
