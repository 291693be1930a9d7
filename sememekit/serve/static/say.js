// The words of the page, in English and Chinese.
const TEXTS = {
  skip: ["Skip to the content", "跳到内容"],
  model: ["Model", "模型"], beside: ["Beside it", "并排比较"], none: ["none", "无"], language: ["Language", "语言"],
  copy: ["Copy link", "复制链接"], copied: ["The link is copied.", "链接已复制。"], print: ["Print", "打印"],
  context: ["Next words", "下一个词"], text: ["Surprisal", "意外度"], annotation: ["Annotation", "义原标注"],
  lattice: ["Characters", "字符切分"], classifier: ["Classifier", "分类器"], writing: ["Writing", "生成文本"],
  contextLead: ["Type a context. The model says which words may follow, in which sense, and which sememes the context makes more probable.",
    "输入上文，模型给出后续的词、词的义项，以及上文使哪些义原更可能出现。"],
  textLead: ["Type sentences, one a line. The stronger the colour, the less the model expected the word. Choose a word to see its senses and what was expected instead.",
    "每行输入一句。颜色越深，模型越没有料到这个词。选择一个词，查看其义项和模型原本预期的词。"],
  annotationLead: ["Switch sememes of a sense on or off, or give a word a sense. The model reads the change at once; nothing is trained.",
    "打开或关闭义项的义原，或者为词写一个义项。模型立即读取更改，不需要训练。"],
  latticeLead: ["Type raw characters. An arc is a word; the thicker, the more probable. Choose a cut to see the alternatives.",
    "输入未切分的文字。弧线表示词，越粗越可能。选择一个切分点查看其他可能。"],
  classifierLead: ["Type a text. Blue words speak for the label, orange words against it. Choose a word to see its sememes.",
    "输入文本。蓝色的词支持该标签，橙色的词反对。选择一个词查看其义原。"],
  writingLead: ["Type a text, such as an article. The model writes a headline or a reply for it. Choose a word to see where the model looked.",
    "输入一段文本，例如一篇文章，模型为它写出标题或回复。选择一个词查看模型关注的位置。"],
  yourSource: ["Source text", "源文本"], written: ["Written text", "写出的文本"], writtenNothing: ["The model wrote no word.", "模型没有写出词。"],
  alternatives_: ["Texts that the search found", "搜索找到的文本"], lookedAt: ["Where the attention lay", "注意力所在"],
  yourContext: ["Context", "上文"], yourText: ["Text", "文本"], yourRaw: ["Raw text", "原始文本"],
  nextWords: ["Next words", "下一个词"], raisedSememes: ["More probable sememes", "更可能的义原"],
  word: ["word", "词"], probability: ["probability", "概率"], senses: ["senses", "义项"], sense: ["sense", "义项"],
  share: ["share", "占比"], sememes: ["sememes", "义原"], sememe: ["sememe", "义原"], mean: ["mean", "平均"], lift: ["lift", "提升"],
  times: ["times", "倍"], rank: ["rank", "排名"], before: ["before", "之前"], after: ["after", "之后"], count: ["tokens", "词例"],
  perplexity: ["perplexity", "困惑度"], words: ["words", "词数"], nats: ["nats", "奈特"], surprisal: ["Surprisal", "意外度"],
  expected: ["expected", "意料之中"], surprising: ["surprising", "出乎意料"], insteadOf: ["Expected instead", "原本预期"],
  sensesHere: ["Senses in this sentence", "在此句中的义项"], evenMark: ["The stroke marks the even share.", "竖线表示均分时的占比。"],
  noSenses: ["This model gives words a probability at once; it has no senses.", "该模型直接给出词的概率，没有义项。"],
  lastAsked: ["The context is cut to its last N characters.", "只使用上文的最后 N 个字符。"],
  firstAsked: ["The text is cut to its first N characters.", "只使用文本的前 N 个字符。"],
  nothingBefore: ["Nothing predicts the first word of a line.", "行首的词没有上文可供预测。"],
  close: ["Close", "关闭"], neighbours: ["Sememes of the same senses", "同义项的义原"], wordsWith: ["Words with this sememe", "含此义原的词"],
  source: ["source", "来源"], notAnnotated: ["No lexicon knows this word.", "词典未收录此词。"], edit: ["Change this annotation", "更改标注"],
  changes: ["Changes", "更改"], noChanges: ["No changes yet. Look up a word below.", "尚无更改。请在下面查找一个词。"],
  undo: ["Undo", "撤销"], undoAll: ["Undo all", "全部撤销"], save: ["Save overlay, table and diff", "保存覆盖文件、词表与差异"],
  savedIn: ["Saved in", "已保存到"], lookUp: ["Word", "词"], show: ["Show", "显示"], add: ["Add", "添加"], addSememe: ["Add a sememe", "添加义原"],
  oneSense: ["A sense can be written anew: add sememes, then take the old ones away. A further sense of a word needs training.",
    "可以改写义项：先添加义原，再去掉旧的。为词增加义项则需要训练。"],
  addFirst: ["Add a sememe before you take the last one away.", "去掉最后一个义原前请先添加另一个。"],
  measured: ["Text to measure", "用于测量的文本"], effect: ["What the changes do", "更改的效果"],
  changedWords: ["Changed words after the context", "上文之后被更改的词"],
  unannotated: ["Words without annotation", "未标注的词"], accept: ["Accept", "接受"], evidence: ["evidence", "依据"],
  noOverlay: ["This model reads no sememes, or was built from them once. Choose a model with sdlm.", "该模型不读取义原。请选择 sdlm 模型。"],
  allAnnotated: ["Every word of this model is annotated.", "该模型的词均已标注。"],
  cutAfter: ["Cut after", "切分于"], cut: ["cut", "切分"], alternatives: ["Alternatives at this cut", "此切分点的其他可能"], ends: ["ends here", "止于此"],
  crosses: ["goes across", "跨越"], bestPath: ["Most probable words", "最可能的词"],
  label: ["Label", "标签"], strong: ["Sememes that moved the label", "影响标签的义原"], moved: ["Words that moved the label", "影响标签的词"],
  attack: ["Attack this text", "攻击此文本"], stop: ["Stop", "停止"], search: ["Search", "搜索"], queries: ["queries", "查询"],
  outcome: ["outcome", "结果"], rate: ["Rate the substitutes", "评价替换词"], same: ["same meaning", "意思相同"], fluent: ["fluent", "通顺"],
  yes: ["yes", "是"], no: ["no", "否"], saveRating: ["Save rating", "保存评价"], ratings: ["ratings in", "条评价，保存在"],
  success: ["The label changed.", "标签改变了。"], failed: ["The label stands.", "标签未变。"],
  needs: ["No served model answers this. Start the server with", "没有提供可用的模型。请用以下方式启动："],
  needsClassifier: ["a classifier.", "一个分类器。"], needsLattice: ["a lattice model.", "一个格模型。"], needsWords: ["a language model.", "一个语言模型。"],
  needsWriting: ["a model of headlines or dialogue.", "一个标题或对话模型。"],
  token: ["This server asks for a token. Open the link that it printed.", "此服务器需要令牌，请打开它输出的链接。"],
  lost: ["The server does not answer. Is it still running?", "服务器没有响应，是否仍在运行？"], wait: ["working…", "计算中…"],
  noun: ["noun", "名"], verb: ["verb", "动"], adjective: ["adjective", "形"], adverb: ["adverb", "副"], preposition: ["preposition", "介"],
  conjunction: ["conjunction", "连"], particle: ["particle", "助"], mark: ["mark", "标点"], classifier_: ["classifier", "量"], pronoun: ["pronoun", "代"], number: ["number", "数"],
};
let lang = 0;
export const setLanguage = (name) => {
  lang = name === "zh" ? 1 : 0;
  document.documentElement.lang = lang ? "zh-Hans" : "en";
  for (const node of document.querySelectorAll("[data-say]")) node.textContent = say(node.dataset.say);
};
export const say = (key) => (TEXTS[key] ?? [key, key])[lang];
export const percent = (value) => `${(100 * value).toFixed(value < 0.0995 ? 2 : 1)} %`;
export const number = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : value.toFixed(Math.abs(value) >= 100 ? 1 : 2));
// A value with its sign and two significant digits.
export const signed = (value) => {
  const size = Math.abs(value), text = size >= 0.001 ? size.toFixed(3) : size ? size.toExponential(1) : "0";
  return `${value < 0 ? "−" : "+"}${text}`;
};
