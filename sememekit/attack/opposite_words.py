"""Our own list of opposites: the most frequent words whose exchange changes what a text says. No substitute for an antonym
list."""

from __future__ import annotations

from itertools import chain
from typing import Final

GROUPS: Final = """
man guy gentleman boy | woman lady girl gal
men guys gentlemen boys | women ladies girls gals
male males | female females
father dad daddy | mother mom mommy mum
fathers dads | mothers moms
husband | wife
husbands | wives
son | daughter
sons | daughters
brother | sister
brothers | sisters
uncle | aunt
grandfather grandpa | grandmother grandma
king prince | queen princess
actor | actress
adult adults grown-up | child children kid kids baby babies
up upward upwards upstairs above over atop | down downward downwards downstairs below under beneath underneath
in inside into indoors within | out outside outdoors without
on | off
left | right
front forward forwards ahead | back backward backwards behind rear
near close nearby | far distant away
top | bottom
north northern | south southern
east eastern | west western
here | there
before earlier | after later afterwards
first | last
early | late
past | future
yesterday | tomorrow
day daytime | night nighttime
morning | evening night
summer | winter
new young recent modern | old elderly aged ancient
always | never
all every everything everyone everybody | no none nothing nobody
some something someone somebody | no none nothing nobody
many much more most lots several | few little less least fewer
always often frequently usually | seldom rarely hardly never
yes | no
with | without
same alike similar identical | different unlike
good great fine nice excellent wonderful superb brilliant | bad poor awful terrible horrible lousy dreadful
better best | worse worst
well | badly poorly
big large huge tall | small little tiny short
bigger larger taller | smaller shorter
long lengthy | short brief
high higher highest | low lower lowest
wide broad | narrow
thick fat | thin slim skinny
heavy | light
strong powerful | weak feeble
hard difficult tough | easy simple effortless
hard | soft
fast quick rapid swift | slow sluggish
fast quickly rapidly | slowly
hot warm | cold cool chilly freezing
dry | wet
clean | dirty
full | empty
open opened opens | closed close shut closes
bright light | dark dim
white | black
loud noisy | quiet silent
happy glad cheerful | sad unhappy miserable
funny amusing hilarious | serious humorless unfunny
interesting exciting engaging thrilling | boring dull tedious uninteresting
beautiful pretty attractive | ugly unattractive
smart clever intelligent | stupid dumb
rich wealthy | poor
safe | dangerous unsafe
true right correct | false wrong incorrect
real genuine authentic | fake false
alive living | dead
awake | asleep
public | private
possible | impossible
likely | unlikely
able | unable
success successes successful | failure failures unsuccessful failed
succeed succeeds succeeded | fail fails failed
love loves loved like likes liked | hate hates hated dislike dislikes disliked
laugh laughs laughing smile smiles smiling | cry cries crying frown frowns frowning
win wins won winning | lose loses lost losing
buy buys bought buying | sell sells sold selling
give gives gave giving | take takes took taking
come comes came coming arrive arrives arrived | go goes went going leave leaves left
enter enters entered entering | exit exits exited leave leaves leaving
start starts started begin begins began | stop stops stopped end ends ended finish finishes finished
stand stands standing stood | sit sits sitting sat lie lies lying
walk walks walking | run runs running
push pushes pushing | pull pulls pulling
rise rises rose rising climb climbs climbing increase increases increased | fall falls fell falling decrease decreases decreased
accept accepts accepted | reject rejects rejected refuse refuses refused
remember remembers | forget forgets
friend friends | enemy enemies
war | peace
life | death
heaven | hell
beginning start | end ending
strength strengths | weakness weaknesses
positive | negative
more | less
男 男人 男子 男生 男性 | 女 女人 女子 女生 女性
父亲 爸爸 | 母亲 妈妈
上 上面 上升 上涨 上调 | 下 下面 下降 下跌 下调
涨 大涨 | 跌 大跌
升 高 提高 升高 | 降 低 降低
增加 增长 增多 | 减少 下降 减
大 巨大 | 小 微小
多 | 少
好 良好 | 坏 差 糟糕
新 | 旧 老
快 | 慢
早 | 晚
前 以前 之前 | 后 以后 之后
左 | 右
内 里 国内 | 外 国外
进 进口 进入 | 出 出口 退出
开 开始 打开 | 关 结束 关闭 停止
买 买入 买进 | 卖 卖出
胜 赢 胜利 成功 | 败 输 失败
是 有 | 不是 没有 无
喜欢 爱 | 讨厌 恨
支持 赞成 同意 | 反对 拒绝
安全 | 危险
真 真实 | 假 虚假
生 活 | 死
强 | 弱
长 | 短
冷 | 热
"""
"""A line for each pair of groups: every word left of the bar is an opposite of every word right of it."""


def built_in_opposites() -> frozenset[frozenset[str]]:
    """All pairs of ``GROUPS``."""
    sides = [[side.split() for side in line.split("|")] for line in GROUPS.strip().split("\n")]
    pairs = chain.from_iterable(((one, two) for one in left for two in right) for left, right in sides)
    return frozenset(frozenset(pair) for pair in pairs if pair[0] != pair[1])
