// The worst and the best documents by the chosen figure: references and summaries side by side.
const ENDS = {
  higher: [["worst", "Worst"], ["best", "Best"]], lower: [["worst", "Worst"], ["best", "Best"]],
  null: [["worst", "Lowest"], ["best", "Highest"]],
};
function drawDocuments() {
  const order = Number(byId("order").value), chosen = all.orders[order][figure], ends = ENDS[figures[figure].better];
  byId("ends").replaceChildren(...ends.flatMap(([end, title]) => [
    made("h3", {textContent: `${title} ${order ? `for ${systems[0]}` : ""}`.trim()}),
    ...chosen[end].map((place, rank) => documentOf(all.shown[place], end === "worst" && rank === 0)),
    ...(chosen[end].length ? [] : [made("p", {className: "note", textContent: "None."})]),
  ]));
  const bases = new Set(all.shown.map(({base}) => base)), left = all.left_out;
  byId("documents-note").textContent = (bases.has("reference") ? "The documents are not at hand: what was copied, and what supports a sentence, was looked for in the references. " : "") +
    (left ? `The page is full: ${many(left, "document")} found no room.` : "");
}
function documentOf(data, open) {
  const box = made("details", {className: "document", open});
  const scores = systems.map((name, s) => made("span", {textContent: `${name} ${shown(data.scores[s][figure], figure)}`}));
  box.append(made("summary", {}, made("strong", {textContent: data.id, dir: "auto"}), ...scores));
  // Texts are drawn when they are opened: there may be many.
  const fill = () => {
    if (!box.open || box.children.length > 1) return;
    const reference = made("section", {}, made("h4", {textContent: data.references.length > 1 ? "References" : "Reference"}));
    data.references.forEach((text, i) => {
      if (data.references.length > 1) reference.append(made("h5", {textContent: `Reference ${i + 1}`}));
      reference.append(sentencesOf(text, data));
    });
    const summaries = data.summaries.map((text, s) => made("section", {},
      made("h4", {textContent: `${systems[s]}: ${figures[figure].label} ${shown(data.scores[s][figure], figure)}`}), sentencesOf(text, data)));
    box.append(made("div", {className: "texts"}, reference, ...summaries));
  };
  box.addEventListener("toggle", fill);
  fill();
  return box;
}
const runOf = length => length >= 10 ? 3 : length >= 5 ? 2 : length >= 3 ? 1 : 0;
function sentencesOf(sentences, data) {
  if (!sentences.length) return made("p", {className: "empty", textContent: "Empty"});
  return made("ol", {className: "sentences"}, ...sentences.map(({pieces, support, recall, enough}) => {
    const item = made("li", {dir: "auto", className: enough === false ? "alone" : ""}, ...pieces.map(([text, length]) =>
      runOf(length) ? made("mark", {className: `run-${runOf(length)}`, textContent: text, title: `${length} words in one run`}) : text));
    if (support) item.append(supportOf(support, recall, enough, data));
    return item;
  }));
}
const percentOf = share => `${Math.round(100 * share)}%`;
function supportOf(support, recall, enough, {source, base}) {
  const badge = enough ? [] : [made("span", {className: "badge", textContent: "without support"}), " "];
  const where = base === "document" ? "the document" : "the references";
  if (!support.length) return made("div", {className: "support none"}, ...badge, `none of its pairs of words stand in ${where}`);
  const told = `${percentOf(recall)} in ${many(support.length, "sentence")}`;
  return made("details", {className: "support"}, made("summary", {}, ...badge, told),
    made("ol", {}, ...support.map(([index, share]) => made("li", {dir: "auto"}, made("span", {textContent: `${percentOf(share)} `}), source[index]))));
}

function begin() {
  const names = systems.length > 1 ? `${systems.length} systems` : systems[0];
  byId("about").textContent = `${many(all.documents, "document")}, ${names}.`;
  byId("legend").append(...systems.map((name, s) => {
    const key = drawn("svg", {viewBox: "0 0 14 14", "aria-hidden": "true"});
    key.append(drawn("path", {d: shapeOf(s)(7, 7, 4.5), fill: colourOf(s)}));
    return made("li", {}, key, name);
  }));
  byId("figure").append(...figures.map(({label}, value) => made("option", {value, textContent: label})));
  byId("figure").addEventListener("change", () => choose(Number(byId("figure").value)));
  byId("order").append(...systems.map((name, value) => made("option", {value, textContent: value ? `${systems[0]} minus ${name}` : `the score of ${name}`})));
  byId("order").addEventListener("change", drawDocuments);
  drawTables();
  choose(0);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawDistribution();
    drawLengths();
  });
  document.documentElement.dataset.ready = "yes";
}
begin();
