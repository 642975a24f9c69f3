const {systems, figures} = all, SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x} ${y - 1.3 * r}l${1.3 * r} ${2.3 * r}h${-2.6 * r}z`,
  (x, y, r) => `M${x} ${y - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`,
];
const colourOf = system => `var(--s${system % 6})`, shapeOf = system => SHAPES[system % SHAPES.length];
// The figure that charts and documents show.
let figure = 0;

// Figures that reach 10 have two digits behind the point, smaller ones three.
const digits = figures.map((_, f) => Math.max(...all.distributions[f].quartiles.flat().map(Math.abs)) >= 10 ? 2 : 3);
const shown = (value, f, sign) => value === null ? "–" : (sign && value > 0 ? "+" : "") + value.toFixed(digits[f]).replace("-", "−");
const interval = (low, high, f, sign) => `[${shown(low, f, sign)}, ${shown(high, f, sign)}]`;
const better = ({better}) => better === null ? "" : better === "higher" ? " ↑" : " ↓";

function table(id, corner, heads, rows) {
  const head = made("thead", {}, made("tr", {}, made("th", {scope: "col", textContent: corner}), ...heads.map(each => made("th", {scope: "col"}, each))));
  const body = rows.map(([name, cells]) => made("tr", {}, made("th", {scope: "row", textContent: name, dir: "auto"}), ...cells));
  byId(id).replaceChildren(head, made("tbody", {}, ...body));
}
function chooser(f) {
  const button = made("button", {type: "button", textContent: figures[f].label + better(figures[f])});
  button.dataset.figure = f;
  button.title = {higher: "Higher is better.", lower: "Lower is better.", null: "Describes, does not judge."}[figures[f].better];
  button.addEventListener("click", () => choose(f));
  return button;
}
function drawTables() {
  const cell = (f, main, apart, unclear) => {
    const made_ = made("td", {className: unclear ? "unclear" : ""}, made("strong", {textContent: main}), ...apart.map(textContent => made("span", {className: "apart", textContent})));
    made_.dataset.figure = f;
    return made_;
  };
  table("scores", "system", figures.map((_, f) => chooser(f)), systems.map((name, s) =>
    [name, all.estimates[s].map(([mean, low, high], f) => cell(f, shown(mean, f), [interval(low, high, f)]))]));
  byId("differences-part").hidden = systems.length < 2;
  byId("differences-title").textContent = `Differences: ${systems[0]} minus each other system`;
  table("differences", "minus", figures.map(({label}) => label), all.differences.map((difference, other) =>
    [systems[other + 1], difference.map(([mean, low, high, p], f) => cell(f, shown(mean, f, true),
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
const begun = (id, height) => {
  const svg = byId(id), width = Math.max(280, svg.clientWidth || 560);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  svg.replaceChildren();
  return [svg, width];
};
const fitted = (text, width) => text.length * 6.6 <= width ? text : `…${text.slice(1 - Math.floor(width / 6.6))}`;
function drawDistribution() {
  const {low, high, cut, counts, quartiles} = all.distributions[figure], row = 84, top = 18, left = 4;
  const [svg, width] = begun("distribution", systems.length * row + 40), wide = width - 2 * left;
  const x = value => left + wide * Math.min(1, Math.max(0, (value - low) / (high - low)));
  // The share of documents, so that all systems have one height.
  const most = Math.max(1, ...counts.flat()), step = wide / counts[0].length;
  counts.forEach((bars, s) => {
    const bottom = (s + 1) * row, high = row - top - 8, mean = all.estimates[s][figure][0];
    svg.append(drawn("text", {x: left, y: bottom - row + 14, fill: colourOf(s), "font-weight": 600}, fitted(systems[s], wide - 120)),
      drawn("text", {class: "end", x: width - left, y: bottom - row + 14}, `mean ${shown(mean, figure)}`));
    const d = bars.map((n, i) => `M${(left + i * step + .5).toFixed(1)} ${bottom}v${(-high * n / most).toFixed(1)}h${(step - 1).toFixed(1)}V${bottom}z`).join("");
    svg.append(drawn("path", {class: "bars", d, fill: colourOf(s)}), drawn("line", {class: "axis", x1: left, x2: width - left, y1: bottom, y2: bottom}),
      drawn("line", {class: "mean", x1: x(mean), x2: x(mean), y1: bottom - high, y2: bottom}));
  });
  const bottom = systems.length * row;
  for (const [value, label] of ticks(low, high, wide / 70)) svg.append(
    drawn("line", {class: "zero", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4}),
    drawn("text", {class: x(value) < 14 ? "" : x(value) > width - 14 ? "end" : "middle", x: x(value) < 14 ? left : Math.min(x(value), width - left), y: bottom + 17}, label));
  svg.append(drawn("text", {class: "middle", x: width / 2, y: bottom + 34}, figures[figure].label));
  byId("distribution-note").textContent = `Number of documents by ${figures[figure].label}; the line is the mean. The highest bar counts ${count(most)}.` +
    (cut ? " The first and the last bar also count the documents beyond." : "");
  table("quartiles", "system", ["lowest", "a quarter below", "median", "three quarters below", "highest"], systems.map((name, s) =>
    [name, quartiles[s].map(value => made("td", {textContent: shown(value, figure)}))]));
}

// The scatter plot: a point is a summary. The arrow keys go through them from short to long.
let points = [], at = null;
function drawLengths() {
  const {words, scores, correlations, ids} = all.points, high = 320, left = 46, top = 10, bottom = high - 40;
  const [svg, width] = begun("lengths", high);
  const known = scores.flatMap(each => each[figure].filter(value => value !== null));
  const shortest = Math.min(...words.flat()), longest = Math.max(shortest + 1, ...words.flat());
  let [low, most] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  if (low === most) [low, most] = [low - .5, most + .5];
  const x = value => left + 6 + (width - left - 14) * (value - shortest) / (longest - shortest), y = value => bottom - (bottom - top) * (value - low) / (most - low);
  for (const [value, label] of ticks(low, most, 6)) svg.append(
    drawn("line", {class: "axis", x1: left, x2: width - 8, y1: y(value), y2: y(value)}),
    drawn("text", {class: "end", x: left - 6, y: y(value) + 4}, label));
  for (const [value, label] of ticks(shortest, longest, (width - left) / 70)) svg.append(
    drawn("line", {class: "zero", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4}),
    drawn("text", {class: x(value) > width - 20 ? "end" : "middle", x: Math.min(x(value), width - 4), y: bottom + 17}, label));
  svg.append(drawn("text", {class: "middle", x: (left + width) / 2, y: bottom + 34}, "words of the summary"));
  points = systems.flatMap((_, s) => ids.flatMap((id, i) => {
    const value = scores[s][figure][i];
    return value === null ? [] : [{s, id, words: words[s][i], value, x: x(words[s][i]), y: y(value)}];
  })).sort((a, b) => a.words - b.words || a.value - b.value);
  systems.forEach((_, s) => svg.append(drawn("path", {class: "dots", fill: colourOf(s), d:
    points.filter(point => point.s === s).map(point => shapeOf(s)(Math.round(point.x * 10) / 10, Math.round(point.y * 10) / 10, 2.6)).join("")})));
  svg.append(drawn("circle", {class: "ring", id: "ring", r: 6, visibility: "hidden"}));
  const related = systems.map((name, s) => `${name} ${correlations[s][figure] === null ? "–" : correlations[s][figure].toFixed(2).replace("-", "−")}`);
  byId("lengths-note").textContent = `Correlation with length (Pearson): ${related.join("; ")}.` +
    (ids.length < all.documents ? ` Shown are ${count(ids.length)} of ${count(all.documents)} documents, drawn at random.` : "");
  tell(null);
}
function tell(number) {
  at = number;
  const point = points[number], ring = byId("ring");
  ring.setAttribute("visibility", point ? "visible" : "hidden");
  byId("point").textContent = point ? `Document ${point.id}, ${systems[point.s]}: ${many(point.words, "word")}, ${figures[figure].label} ${shown(point.value, figure)}.`
    : "Point at a summary, or go through them with the arrow keys.";
  if (!point) return;
  ring.setAttribute("cx", point.x);
  ring.setAttribute("cy", point.y);
}
byId("lengths").addEventListener("mousemove", event => {
  const box = byId("lengths").getBoundingClientRect(), far = point => (point.x - event.clientX + box.left) ** 2 + (point.y - event.clientY + box.top) ** 2;
  let nearest = null;
  points.forEach((point, i) => {
    if (far(point) < (nearest === null ? 400 : far(points[nearest]))) nearest = i;
  });
  if (nearest !== at) tell(nearest);
});
byId("lengths").addEventListener("keydown", event => {
  const last = points.length - 1, to = {ArrowRight: at === null ? 0 : Math.min(at + 1, last), ArrowLeft: at === null ? last : Math.max(at - 1, 0), Home: 0, End: last, Escape: null}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  tell(to);
});

function choose(f) {
  figure = f;
  byId("figure").value = f;
  for (const button of document.querySelectorAll("th button")) button.setAttribute("aria-pressed", Number(button.dataset.figure) === f);
  for (const cell of document.querySelectorAll("td[data-figure]")) cell.classList.toggle("now", Number(cell.dataset.figure) === f);
  drawDistribution();
  drawLengths();
  drawDocuments();
}
