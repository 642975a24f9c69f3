// What another query on the same document changed. Tokens of the documents are compared, not those of the queries.
let other = null;
const own = of => of.document.flatMap((_, i) => {
  const piece = of.starts.findLastIndex(start => start <= i);
  return i - of.starts[piece] < of.asked[piece] ? [] : [i];
});
function offerComparison(number) {
  other = null;
  const others = all.documents.flatMap(({name, query}, value) => value !== number && query && name === data.name ? [{value, textContent: query}] : []);
  byId("comparison").hidden = !data.query || !others.length;
  byId("compare").replaceChildren(...[{value: "", textContent: "no other query"}, ...others].map(each => made("option", each)));
  byId("document").classList.remove("compared");
  byId("changed").textContent = "";
  byId("passages").replaceChildren();
}
byId("compare").addEventListener("change", () => {
  const chosen = byId("compare").value;
  other = chosen === "" ? null : joined(all.documents[Number(chosen)]);
  show(Number(byId("layer").value));
});
// What is left of each token for the other query, after a layer; null where nothing can be compared.
function compared(number) {
  byId("document").classList.remove("compared");
  byId("passages").replaceChildren();
  byId("changed").textContent = "";
  if (other === null) return null;
  const mine = own(data), theirs = own(other), length = Math.min(mine.length, theirs.length);
  // Behind a longer query less is read. The last token of either is the end.
  const pairs = mine.slice(0, length - 1).map((at, i) => [at, theirs[i]]);
  const left = (of, at) => number === 0 ? 1000 : of.layers[number - 1].reached?.[at];
  if (pairs.some(([at, there]) => data.document[at] !== other.document[there])) {
    byId("changed").textContent = "For the other query the document was cut elsewhere: the two cannot be compared.";
    return null;
  }
  if (left(data, 0) === undefined || left(other, 0) === undefined) return null;
  const both = pairs.map(([at, there]) => ({at, a: left(data, at), b: left(other, there)}));
  const [here, there] = [makeUpHalf(both, "a"), makeUpHalf(both, "b")], same = [...here].filter(at => there.has(at)).length;
  const most = sum(both, ({a, b}) => Math.max(a, b)), shared = most ? sum(both, ({a, b}) => Math.min(a, b)) / most : 1;
  byId("document").classList.add("compared");
  byId("changed").textContent = `Half of what is left of the document is made up by ${many(here.size, "token")} for this query and by ` +
    `${count(there.size)} for the other; ${count(same)} of them are the same. Of all that is left for either, ${percent(shared, 1)} is left for both.`;
  drawPassages(both);
  return new Map(both.map(({at, b}) => [at, b]));
}
// The fewest tokens that make up half of all that is left.
function makeUpHalf(both, key) {
  const half = sum(both, each => each[key]) / 2, found = new Set();
  let total = 0;
  for (const each of [...both].sort((one, other) => other[key] - one[key])) {
    if (total >= half) break;
    total += each[key];
    found.add(each.at);
  }
  return found;
}
// The sentences of which one query keeps most more than the other.
function drawPassages(both) {
  const sentences = [];
  both.forEach(({at, a, b}, i) => {
    const text = data.document[at], before = i ? data.document[both[i - 1].at] : "";
    if (!i || text.startsWith("\n") || before === "" || (/[.!?]$/.test(before) && text.startsWith(" "))) sentences.push({at, text: "", gain: 0});
    const sentence = sentences.at(-1);
    sentence.text += text;
    sentence.gain += a - b;
  });
  for (const [title, sign, className] of [["More is left for this query", 1, ""], ["More is left for the other query", -1, "other"]]) {
    const best = sentences.filter(({gain, text}) => sign * gain >= 100 && text.trim()).sort((a, b) => sign * (b.gain - a.gain)).slice(0, 5);
    if (!best.length) continue;
    const rows = best.map(({at, text}) => {
      const whole = text.trim(), button = made("button", {className: "w", type: "button", dir: "auto", textContent: whole.length > 110 ? `${whole.slice(0, 110)}…` : whole});
      button.addEventListener("click", () => spans[at].scrollIntoView({block: "center"}));
      return button;
    });
    byId("passages").append(made("div", {className}, made("h3", {textContent: title}), ...rows));
  }
}
