// What another query on the same document changed. Segments of the documents are compared, not those of the queries.
function compare() {
  const own = of => of.blocks.flatMap(([tag, from], at) => tag === "query" ? []
    : Array.from({length: (of.blocks[at + 1]?.[1] ?? of.segments.length) - from}, (_, i) => from + i));
  const mine = own(data), theirs = own(other), length = Math.min(mine.length, theirs.length);
  // Behind a longer query less is read. The last token of either is the end.
  const pairs = mine.slice(0, length - 1).map((at, i) => [at, theirs[i]]), [values, others] = [data, other].map(of => valuesOf(of, layer()));
  byId("passages").replaceChildren();
  byId("changed").textContent = "";
  if (pairs.some(([at, there]) => data.segments[at] !== other.segments[there])) {
    byId("changed").textContent = "For the other query the document was cut elsewhere: the two cannot be compared.";
    return null;
  }
  if (!values || !others) return null;
  const both = pairs.map(([at, there]) => ({at, a: values[at], b: others[there]}));
  const [here, there] = ["a", "b"].map(key => makeUpHalf(both, key)), same = [...here].filter(at => there.has(at)).length;
  const most = sum(both, ({a, b}) => Math.max(a, b)), shared = most ? sum(both, ({a, b}) => Math.min(a, b)) / most : 1;
  byId("changed").textContent = `Half of what is left of the document is made up by ${many(here.size, "token")} for this query and by ` +
    `${count(there.size)} for the other; ${count(same)} of them are the same. Of all that is left for either, ${percent(shared)} is left for both.`;
  drawPassages(both);
  return new Map(both.map(({at, b}) => [at, b]));
}
// The fewest segments that make up half of all that is left.
function makeUpHalf(both, key) {
  const found = new Set();
  let left = sum(both, each => each[key]) / 2;
  for (const each of [...both].sort((one, other) => other[key] - one[key])) {
    if (left <= 0) break;
    left -= each[key];
    found.add(each.at);
  }
  return found;
}
// The sentences with the largest differences between what is left for the two queries.
function drawPassages(both) {
  const sentences = [];
  both.forEach(({at, a, b}, i) => {
    const text = data.segments[at], before = i ? data.segments[both[i - 1].at] : "";
    if (!i || text.startsWith("\n") || before.trim() === "¶" || (/[.!?]$/.test(before) && text.startsWith(" "))) sentences.push({at, text: "", gain: 0});
    sentences.at(-1).text += text;
    sentences.at(-1).gain += a - b;
  });
  for (const [title, sign, className] of [["More is left for this query", 1, ""], ["More is left for the other query", -1, "other"]]) {
    const best = sentences.filter(({gain, text}) => sign * gain >= 100 && text.trim()).sort((a, b) => sign * (b.gain - a.gain)).slice(0, 5);
    if (best.length) byId("passages").append(made("div", {className}, made("h3", {textContent: title}), ...best.map(({at, text}) =>
      link(text.trim().length > 110 ? `${text.trim().slice(0, 110)}…` : text.trim(), () => bringToSight(spanOf[at])))));
  }
}
