"""Forty sentences of our own with tagged senses and their lexicons: English by keys as of WordNet, Chinese by sememes."""

from __future__ import annotations

ENGLISH_LEXICON = """word\tpos\twn30_sense\tsememes
bank\tn\t1\tland water side
bank\tn\t2\tinstitution money
river\tn\t1\twater land
shop\tn\t1\tinstitution trade
spring\tn\t1\tseason
spring\tn\t2\tmetal tool bend
winter\tn\t1\tseason cold
wire\tn\t1\tmetal tool
match\tn\t1\ttool fire
match\tn\t2\tcontest
candle\tn\t1\ttool fire light
game\tn\t1\tcontest
letter\tn\t1\tmessage paper
letter\tn\t2\tsymbol
note\tn\t1\tmessage paper
digit\tn\t1\tsymbol number
"""
ENGLISH = """sentence\tword\tposition\tsense
We sat on the bank and watched the boats .\tbank\t5\tbank#n#1
The bank lends money to farmers .\tbank\t2\tbank#n#2
Grass grew on the bank of the stream .\tbank\t5\tbank#n#1
She opened an account at the bank .\tbank\t7\tbank#n#2
The bank closes at four .\tbank\t2\tbank#n#2
The trees come into leaf in spring .\tspring\t7\tspring#n#1
The spring in the clock broke .\tspring\t2\tspring#n#2
Last spring it rained for weeks .\tspring\t2\tspring#n#1
He put a new spring into the lock .\tspring\t5\tspring#n#2
They marry in spring .\tspring\t4\tspring#n#1
He lit the stove with a match .\tmatch\t7\tmatch#n#1
Our team lost the match .\tmatch\t5\tmatch#n#2
The match went out in the wind .\tmatch\t2\tmatch#n#1
The match ended without a goal .\tmatch\t2\tmatch#n#2
Nobody had a dry match .\tmatch\t5\tmatch#n#1
She posted a letter to her aunt .\tletter\t4\tletter#n#1
The word begins with a small letter .\tletter\t7\tletter#n#2
A letter came from the office .\tletter\t2\tletter#n#1
The last letter of the code is missing .\tletter\t3\tletter#n#2
He read the letter twice .\tletter\t4\tletter#n#1
"""
CHINESE_LEXICON = """word\tsememes
打\t击 人
打\t联络 工具
拍\t击
拨\t联络 工具
包袱\t用具 装
包袱\t负担 心理
袋子\t用具 装
压力\t负担 心理
花\t植物
花\t支付 钱
草\t植物
付\t支付 钱
东西\t物品
东西\t方向
杯子\t物品 用具
南北\t方向
"""
CHINESE = """sentence\tword\tposition\tsense
哥哥 打 了 弟弟 一 下\t打\t2\t击 人
我 给 妈妈 打 电话\t打\t4\t联络 工具
他们 在 街上 打 人\t打\t4\t击 人
请 你 打 这个 号码\t打\t3\t联络 工具
她 用手 打 桌子\t打\t3\t击 人
奶奶 背着 一个 蓝色 的 包袱\t包袱\t6\t用具 装
放下 思想 包袱 才能 前进\t包袱\t3\t负担 心理
包袱 里 有 两 件 衣服\t包袱\t1\t用具 装
债务 成 了 公司 的 包袱\t包袱\t6\t负担 心理
他 把 包袱 放在 床上\t包袱\t3\t用具 装
院子 里 的 花 开 了\t花\t4\t植物
这次 旅行 花 了 很多 钱\t花\t3\t支付 钱
她 买 了 一 束 花\t花\t6\t植物
我们 花 了 一百 元\t花\t2\t支付 钱
春天 到处 是 花\t花\t4\t植物
桌上 的 东西 是 谁 的\t东西\t3\t物品
这条 路 东西 走向\t东西\t3\t方向
他 买 了 不少 东西\t东西\t5\t物品
城墙 东西 长 三 里\t东西\t2\t方向
别 动 我 的 东西\t东西\t5\t物品
"""
