"""Stop words: function words are not replaced."""

from __future__ import annotations

from typing import Final, final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.errors import DataError
from sememekit.files import at_home, read_text

ENGLISH: Final = frozenset(
    """
    a about above after again against all am among an and another any are aren as at be because been before being
    below between both but by can cannot could couldn did didn do does doesn doing don down during each either else
    ever every few for from further had hadn has hasn have haven having he her here hers herself him himself his how
    however i if in into is isn it its itself just may me might more most must my myself neither no nobody none nor
    not nothing now of off on once one only or other our ours ourselves out over own per same shall she should shouldn
    so some somebody someone something such than that the their theirs them themselves then there these they this
    those though through thus to too under until up upon us very was wasn we were weren what whatever when where
    whether which while who whom whose why will with within without won would wouldn yet you your yours yourself
    yourselves 's 've 're 'll 'd 'm n't
    """.split()  # noqa: SIM905
)
"""Articles, pronouns, prepositions, conjunctions, auxiliaries, negations and clitics."""

CHINESE: Final = frozenset(
    """
    的 地 得 了 着 过 吗 呢 吧 啊 呀 嘛 么 之 所 者 是 为 在 于 从 自 向 往 到 对 对于 关于 把 被 给 让 使 将 以
    用 按 按照 跟 同 和 与 及 以及 或 或者 而 而且 并 并且 且 但 但是 可是 不过 然而 因为 由于 所以 因此 如果 若
    要是 虽然 尽管 即使 只要 只有 除非 则 就 才 都 也 还 又 再 很 太 更 最 已 已经 曾 曾经 正在 会 能 可以 可 应
    应该 要 想 我 你 您 他 她 它 我们 你们 他们 她们 它们 自己 这 那 这个 那个 这些 那些 这里 那里 谁 什么 哪 哪里
    哪个 怎么 怎样 如何 为何 多少 几 个 每 各 某 其 其他 有 没有 不 没 无 未 非 别 勿 莫
    """.split()  # noqa: SIM905
)
"""Particles, prepositions, conjunctions, auxiliaries, pronouns and negations."""


@final
class StopWords(Constraint):
    """Words of a list are never touched, and never put in: closed-class words of English and Chinese, or those of a file."""

    class Settings(Constraint.Settings):
        file: str = ""
        """A word a line; empty for the lists of English and Chinese."""

    settings: StopWords.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._words = ENGLISH | CHINESE
        if settings.file:
            text = read_text(at_home(settings.file), lambda why: DataError(f"stop words {why}"))
            self._words = frozenset(text.lower().split())

    def narrow(self, space: Space) -> Space:
        words = self._words
        return space.filtered(lambda word, other: other.lower() not in words, may_change=lambda word: word.lower() not in words)
