// Next words of a context, at every keystroke: their senses, and the sememes that the context makes more probable.
import { barsPicture } from "./draw.js";
import { announce, asking, card, columnHead, el, remarksOf, sememeChip, senseLines, shareOf, table, textInput, wordButton } from "./parts.js";
import { percent, say } from "./say.js";
import { info, state, writeLink } from "./state.js";

export function contextView(place, runs) {
  const columns = runs.map(() => el("section", {}));
  const start = info(runs[0]).start;
  let speaking;
  const draw = asking("explain", runs, columns, drawColumn, { ofEnd: true, afterwards: (answers) => {
    clearTimeout(speaking);
    speaking = setTimeout(() => announce(answers.map(({ result }) => result.words.slice(0, 3).map((one) => `${one.word} ${percent(one.probability)}`).join(", ")).join("; ")), 900);
  } });
  const input = textInput(say("yourContext"), state.context || start, (value) => { state.context = value; writeLink(); draw(value); }, { id: "context", rows: 1 });
  place.replaceChildren(el("p", { class: "lead" }, say("contextLead")), input, el("div", { class: `columns ${runs.length > 1 ? "two" : ""}` }, columns));
  draw(state.context || start);
}

function drawColumn(column, answer, run, two) {
  const { words, expected, no_senses: none, context } = answer.result;
  const most = words[0]?.probability ?? 1;
  const mostSememe = Math.max(...expected.map((one) => one.mass));
  const read = context.map((one) => one.read_as).join(" ");
  const rows = words.map((one) => [wordButton(one.word, run), shareOf(one.probability, { of: most }), ...(none ? [] : [senseLines(one.senses, run)])]);
  const title = `${read} …`;
  const parts = [
    card(say("nextWords"), table([say("word"), say("probability"), ...(none ? [] : [say("senses")])], rows, { stacked: !none }), {
      name: `next-words-${run}`,
      rows: () => [["word", "probability", "sense", "share", "sememes"], ...words.flatMap((one) => (one.senses.length ? one.senses : [null]).map((sense) =>
        [one.word, one.probability, sense?.label, sense?.share, sense?.sememes.map((item) => item.name).join(" ")]))],
      draw: () => barsPicture(title, words.map((one) => [one.word, one.probability, percent(one.probability)])),
    }),
    none ? el("p", { class: "faint small" }, say("noSenses")) : card(say("raisedSememes"), expected.length ? table(
      [say("sememe"), say("probability"), say("mean"), say("lift")],
      expected.map((one) => [el("ul", { class: "chips" }, sememeChip(one.name, run)), shareOf(one.mass, { of: mostSememe, kind: "short" }), percent(one.mean),
        one.lift === null ? "–" : `× ${one.lift.toFixed(1)}`]), { numbers: [2, 3], spare: 2 }) : el("p", { class: "faint" }, "–"), {
      name: `sememes-${run}`,
      rows: () => [["sememe", "probability", "mean", "rise", "lift", "gate", "count"], ...expected.map((one) => [one.name, one.mass, one.mean, one.rise, one.lift, one.gate, one.count])],
      draw: () => barsPicture(title, expected.map((one) => [one.name, one.mass, percent(one.mass)])),
    }),
  ];
  column.replaceChildren(...[columnHead(run, two), ...remarksOf(answer), el("div", { class: "split" }, parts)].filter(Boolean));
}
