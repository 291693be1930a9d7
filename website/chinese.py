"""Lines of Chinese are joined without a blank: where a line of the source ends is no place for one."""

from __future__ import annotations

import re
from typing import Any, Final

_BREAK: Final = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Join the lines outside of blocks of code."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else _BREAK.sub("", part) for number, part in enumerate(parts))
