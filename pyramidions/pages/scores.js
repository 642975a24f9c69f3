// A page of scores: tables, two charts, and the worst and the best documents by the chosen figure.
const {systems, figures} = all, SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x} ${y - 1.3 * r}l${1.3 * r} ${2.3 * r}h${-2.6 * r}z`,
  (x, y, r) => `M${x} ${y - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`,
];
const colourOf = system => `var(--s${system % 6})`, shapeOf = system => SHAPES[system % SHAPES.length];
// The figure that charts and documents show; the points of the scatter plot, and the one described below it.
let chosen = 0, points = [], told = null;

// Figures that reach 10 have two digits behind the point, smaller ones and those without bounds three.
const digits = figures?.map(({bounded}, f) => bounded && Math.max(...all.distributions[f].quartiles.flat().map(Math.abs)) >= 10 ? 2 : 3);
const number = (value, f, sign) => value === null ? "–" : (sign && value > 0 ? "+" : "") + value.toFixed(digits[f]).replace("-", "−");
const interval = (low, high, f, sign) => `[${number(low, f, sign)}, ${number(high, f, sign)}]`;

function beginScores() {
  document.body.className = "scores";
  byId("about").textContent = `${many(all.documents, "document")}, ${systems.length > 1 ? `${systems.length} systems` : systems[0]}.`;
  byId("legend").append(...systems.map((name, s) => {
    const key = drawn("svg", {viewBox: "0 0 14 14", "aria-hidden": "true"});
    key.append(drawn("path", {d: shapeOf(s)(7, 7, 4.5), fill: colourOf(s)}));
    return made("li", {}, key, name);
  }));
  byId("figure").append(...figures.map(({label}, f) => option(label, f)));
  on("figure", "change", () => choose(Number(byId("figure").value)));
  byId("order").append(...systems.map((name, s) => option(s ? `${systems[0]} minus ${name}` : `the score of ${name}`, s)));
  on("order", "change", drawEnds);
  on("lengths", "mousemove", ({clientX, clientY}) => {
    const box = byId("lengths").getBoundingClientRect(), far = point => (point.x - clientX + box.left) ** 2 + (point.y - clientY + box.top) ** 2;
    const nearest = points.reduce((best, point, i) => far(point) < (best === null ? 400 : far(points[best])) ? i : best, null);
    if (nearest !== told) tell(nearest);
  });
  on("lengths", "keydown", event => {
    const last = points.length - 1, to = {ArrowRight: told === null ? 0 : Math.min(told + 1, last), ArrowLeft: told === null ? last : Math.max(told - 1, 0), Home: 0, End: last, Escape: null}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    tell(to);
  });
  drawTables();
  choose(0);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawDistribution();
    drawLengths();
  });
}
function choose(f) {
  chosen = byId("figure").value = f;
  for (const button of document.querySelectorAll("th button")) button.setAttribute("aria-pressed", Number(button.dataset.figure) === f);
  for (const cell of document.querySelectorAll("td[data-figure]")) cell.classList.toggle("now", Number(cell.dataset.figure) === f);
  drawDistribution();
  drawLengths();
  drawEnds();
}

function drawTables() {
  const heads = figures.map(({label, better}, f) => {
    const button = made("button", {type: "button", textContent: label + (better === null ? "" : better === "higher" ? " ↑" : " ↓"),
      title: {higher: "Higher is better.", lower: "Lower is better.", null: "Describes, does not judge."}[better]});
    button.dataset.figure = f;
    button.addEventListener("click", () => choose(f));
    return button;
  });
  const cell = (f, main, below, isUnclear) => {
    const found = made("td", {className: isUnclear ? "unclear" : ""}, made("strong", {textContent: main}), ...below.map(textContent => made("span", {className: "apart", textContent})));
    found.dataset.figure = f;
    return found;
  };
  fillTable("means", ["system", ...heads], systems.map((name, s) =>
    [name, ...all.estimates[s].map(([mean, low, high], f) => cell(f, number(mean, f), [interval(low, high, f)]))]));
  byId("differences-part").hidden = systems.length < 2;
  byId("differences-title").textContent = `Differences: ${systems[0]} minus each other system`;
  fillTable("differences", ["minus", ...figures.map(({label}) => label)], all.differences.map((difference, other) =>
    [systems[other + 1], ...difference.map(([mean, low, high, p], f) => cell(f, number(mean, f, true),
      [interval(low, high, f, true), `p ${p <= all.smallest_p + 1e-9 ? "≤" : "="} ${p.toFixed(3)}`], p >= .05))]));
  // What is said of all systems is said once.
  const [first, ...others] = all.remarks, common = first.filter(remark => others.every(remarks => remarks.includes(remark)));
  byId("remarks").replaceChildren(...common.map(textContent => made("li", {textContent})), ...all.remarks.flatMap((remarks, s) =>
    remarks.filter(remark => !common.includes(remark)).map(remark => made("li", {textContent: `${systems[s]}: ${remark}`}))));
  byId("signature").textContent = all.signature;
}

// Charts are drawn as wide as they are shown, so that their letters keep their size.
function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough * .999), found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step + 0);
  return found.map(value => [value, value.toLocaleString("en-US", {maximumFractionDigits: Math.max(0, -Math.floor(Math.log10(step)))})]);
}
function begun(id, height) {
  const svg = byId(id), width = Math.max(280, svg.clientWidth || 560);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  svg.replaceChildren();
  return {svg, width, at: (tag, attributes, text) => svg.append(drawn(tag, attributes, text))};
}
// The horizontal axis; the first and the last label stay inside.
function drawAxis(at, x, marks, bottom, from, to, title) {
  for (const [value, label] of marks) {
    at("line", {class: "zero", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4});
    at("text", {class: x(value) < from + 10 ? "" : x(value) > to - 14 ? "end" : "middle", x: x(value) < from + 10 ? from : Math.min(x(value), to), y: bottom + 17}, label);
  }
  at("text", {class: "middle", x: (from + to) / 2, y: bottom + 34}, title);
}
const fitted = (text, width) => text.length * 6.6 <= width ? text : `…${text.slice(1 - Math.floor(width / 6.6))}`;
function drawDistribution() {
  const {low, high, cut, counts, quartiles} = all.distributions[chosen], row = 84, tall = row - 26, left = 4;
  const {width, at} = begun("distribution", systems.length * row + 40), wide = width - 2 * left;
  const x = value => left + wide * Math.min(1, Math.max(0, (value - low) / (high - low)));
  // All systems have one height.
  const most = Math.max(1, ...counts.flat()), step = wide / counts[0].length;
  counts.forEach((bars, s) => {
    const bottom = (s + 1) * row, mean = all.estimates[s][chosen][0];
    at("text", {x: left, y: bottom - row + 14, fill: colourOf(s), "font-weight": 600}, fitted(systems[s], wide - 120));
    at("text", {class: "end", x: width - left, y: bottom - row + 14}, `mean ${number(mean, chosen)}`);
    at("path", {class: "bars", fill: colourOf(s), d: bars.map((n, i) =>
      `M${(left + i * step + .5).toFixed(1)} ${bottom}v${(-tall * n / most).toFixed(1)}h${(step - 1).toFixed(1)}V${bottom}z`).join("")});
    at("line", {class: "axis", x1: left, x2: width - left, y1: bottom, y2: bottom});
    at("line", {class: "mean", x1: x(mean), x2: x(mean), y1: bottom - tall, y2: bottom});
  });
  drawAxis(at, x, ticks(low, high, wide / 70), systems.length * row, left, width - left, figures[chosen].label);
  byId("distribution-note").textContent = `Number of documents by ${figures[chosen].label}; the line is the mean. The highest bar counts ${count(most)}.` +
    (cut ? " The first and the last bar also count the documents beyond." : "");
  fillTable("quartiles", ["system", "lowest", "a quarter below", "median", "three quarters below", "highest"],
    systems.map((name, s) => [name, ...quartiles[s].map(value => number(value, chosen))]));
}
// The scatter plot: a point is a summary. The arrow keys go through them from short to long.
function drawLengths() {
  const {words, scores, correlations, ids} = all.points, height = 320, left = 46, top = 10, bottom = height - 40;
  const {width, at} = begun("lengths", height), known = scores.flatMap(each => each[chosen].filter(value => value !== null));
  const shortest = Math.min(...words.flat()), longest = Math.max(shortest + 1, ...words.flat());
  let [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  if (low === high) [low, high] = [low - .5, high + .5];
  const x = value => left + 6 + (width - left - 14) * (value - shortest) / (longest - shortest), y = value => bottom - (bottom - top) * (value - low) / (high - low);
  for (const [value, label] of ticks(low, high, 6)) {
    at("line", {class: "axis", x1: left, x2: width - 8, y1: y(value), y2: y(value)});
    at("text", {class: "end", x: left - 6, y: y(value) + 4}, label);
  }
  drawAxis(at, x, ticks(shortest, longest, (width - left) / 70), bottom, left - 10, width - 4, "words of the summary");
  points = systems.flatMap((_, s) => ids.flatMap((id, i) => {
    const value = scores[s][chosen][i];
    return value === null ? [] : [{s, id, words: words[s][i], value, x: x(words[s][i]), y: y(value)}];
  })).sort((a, b) => a.words - b.words || a.value - b.value);
  systems.forEach((_, s) => at("path", {class: "dots", fill: colourOf(s), d:
    points.filter(point => point.s === s).map(point => shapeOf(s)(Math.round(point.x * 10) / 10, Math.round(point.y * 10) / 10, 2.6)).join("")}));
  at("circle", {class: "ring", id: "ring", r: 6, visibility: "hidden"});
  const related = systems.map((name, s) => `${name} ${correlations[s][chosen] === null ? "–" : correlations[s][chosen].toFixed(2).replace("-", "−")}`);
  byId("lengths-note").textContent = `Correlation with length (Pearson): ${related.join("; ")}.` +
    (ids.length < all.documents ? ` Shown are ${count(ids.length)} of ${count(all.documents)} documents, drawn at random.` : "");
  tell(null);
}
function tell(which) {
  told = which;
  const point = points[which], ring = byId("ring");
  ring.setAttribute("visibility", point ? "visible" : "hidden");
  byId("point").textContent = point ? `Document ${point.id}, ${systems[point.s]}: ${many(point.words, "word")}, ${figures[chosen].label} ${number(point.value, chosen)}.`
    : "Point at a summary, or go through them with the arrow keys.";
  if (!point) return;
  ring.setAttribute("cx", point.x);
  ring.setAttribute("cy", point.y);
}

// References and summaries side by side.
function drawEnds() {
  const order = Number(byId("order").value), found = all.orders[order][chosen];
  const ends = Object.entries(figures[chosen].better === null ? {worst: "Lowest", best: "Highest"} : {worst: "Worst", best: "Best"});
  byId("ends").replaceChildren(...ends.flatMap(([end, title]) => [
    made("h3", {textContent: `${title} ${order ? `for ${systems[0]}` : ""}`.trim()}),
    ...found[end].map((place, rank) => card(all.shown[place], end === "worst" && rank === 0)),
    ...(found[end].length ? [] : [made("p", {className: "note", textContent: "None."})]),
  ]));
  byId("documents-note").textContent = (all.shown.some(({base}) => base === "reference") ? "The documents are not at hand: what was copied, and what supports a sentence, was looked for in the references. " : "") +
    (all.left_out ? `The page is full: ${many(all.left_out, "document")} found no room.` : "");
}
function card({id, scores, references, summaries, source}, open) {
  const box = made("details", {className: "card", open});
  const textOf = sentences => sentences.length
    ? made("ol", {className: "sentences"}, ...sentences.map(sentence => supportedSentence(sentence, false, ([at]) => source[at])))
    : made("p", {className: "empty", textContent: "Empty"});
  box.append(made("summary", {}, made("strong", {textContent: id, dir: "auto"}), ...systems.map((name, s) => made("span", {textContent: `${name} ${number(scores[s][chosen], chosen)}`}))));
  // Texts are drawn when they are opened: there may be many.
  const fill = () => {
    if (!box.open || box.children.length > 1) return;
    const several = references.length > 1, texts = references.flatMap((text, i) => [...(several ? [made("h5", {textContent: `Reference ${i + 1}`})] : []), textOf(text)]);
    box.append(made("div", {className: "texts"}, made("section", {}, made("h4", {textContent: several ? "References" : "Reference"}), ...texts),
      ...summaries.map((text, s) => made("section", {}, made("h4", {textContent: `${systems[s]}: ${figures[chosen].label} ${number(scores[s][chosen], chosen)}`}), textOf(text)))));
  };
  box.addEventListener("toggle", fill);
  fill();
  return box;
}

(all.view === "scores" ? beginScores : beginDocuments)();
document.documentElement.dataset.ready = "yes";
