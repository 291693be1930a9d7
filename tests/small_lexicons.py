"""Small lexicon files of several formats."""

from __future__ import annotations

from pathlib import Path

TABLE = "word\tpos\tdef\tsememes\nbank\tn\t{institution|机构}\tinstitution|机构 money|钱\nbank\tn\t\tland|地 side|边\n"
HOWNET2000 = "教师\tN\thuman|人,*teach|教\n吃\tV\teat|吃\n的\tSTRU\t{DeChinese|构助}\n"


def write(path: Path, text: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path
