"use strict";
// A page of documents.
const all = JSON.parse(document.getElementById("data").textContent), kind = {table: "", caption: "", how: "", gamma: 1, ...all.kind};
const byId = id => document.getElementById(id);
const made = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const on = (id, event, listener) => byId(id).addEventListener(event, listener);
const count = n => n.toLocaleString("en-US");
const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);
const option = (textContent, value) => made("option", {textContent, value});
// The name of SVG, which the page has in its HTML.
const SVG = document.querySelector("svg").namespaceURI;
function drawn(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  // What XML cannot hold would spoil the file.
  if (text !== undefined) element.textContent = text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "");
  return element;
}
// A sentence of a summary, with what supports it.
function supportedSentence({text, enough, support}, placed) {
  const badge = enough === false ? [" ", made("span", {className: "badge", textContent: "without support"})] : [];
  const lists = support.map(({title, places}) => places.length
    ? made("details", {className: "support", open: true}, made("summary", {textContent: title}), made("ol", {}, ...places.map(([share, ...place]) =>
      made("li", {dir: "auto"}, made("span", {textContent: `${percent(share, 0)} `}), placed(place)))))
    : made("div", {className: "support", textContent: title}));
  return made("li", {dir: "auto", className: badge.length ? "alone" : ""}, text, ...badge, ...lists);
}

// The document that is shown, its segments in order, and those on the screen.
const BANDS = 200, TOP = 16, LINE = 14, SANS = "system-ui, sans-serif", LABEL = `12px ${SANS}`;
const narrow = matchMedia("(max-width: 56rem)"), canvas = document.createElement("canvas").getContext("2d");
const plot = {left: 0, wide: 0, high: 0};
let data, spanOf = [], spans = [], seen = [0, 0], buttons = [], numbers = new Map(), other = null;
// The segment and the item that are picked, the item whose links are marked, and where the tabulator stops.
let picked = null, pinned = null, shown = null, stop = 0;
const isAbout = {words: kind.layout === "words", sentences: kind.layout === "sentences"};
// Isolated, so that words of a language that runs the other way do not turn the sentence around.
const quoted = text => `“\u2068${text.trim() || "¶"}\u2069”`;
const linkOf = k => data.items[k]?.links?.[Number(byId("view").value)] ?? null;
const valuesOf = (of, number) => {
  const which = of.layers.length ? of.layers[number].shades : 0;
  return which === "all" ? of.segments.map(() => 1000) : of.shades[which] ?? null;
};
const layer = () => Number(byId("layer").value);

function begin() {
  document.body.className = `about-${kind.layout}`;
  byId("settings").append(...Object.entries(all.settings).flatMap(([name, value]) => [made("dt", {textContent: name}), made("dd", {textContent: value, dir: "auto"})]));
  byId("left-out").textContent = all.left_out
    ? `This page is full: ${many(all.left_out, "document")} of the same call ${all.left_out === 1 ? "is" : "are"} not on it, or not to the end.` : "";
  for (const id of ["more", "support-part", "reference-part"]) byId(id).open = !narrow.matches;
  byId("only-part").hidden = !isAbout.sentences;
  for (const [id, text] of Object.entries({heading: kind.heading, "table-title": kind.table, how: kind.how, "curve-label": kind.chart})) byId(id).textContent = text;
  byId("legend").append(...kind.legend.map(([style, text, when]) => {
    const key = made("i", {className: typeof style === "string" ? style : ""});
    if (typeof style === "number") key.style.setProperty("--m", style);
    return made("li", {className: when ? `when-${when}` : ""}, ...(style === "" ? [] : [key]), text);
  }));
  byId("chooser").hidden = all.documents.length < 2;
  byId("choose").append(...all.documents.map(({name, query}, at) => option(query ? `${name}: ${query}` : name, at)));
  on("choose", "change", () => {
    open(Number(byId("choose").value));
    scrollTo(0, 0);
  });
  on("view", "change", () => select(picked, pinned));
  on("layer", "input", show);
  on("compare", "change", () => {
    other = all.documents[byId("compare").value] ?? null;
    show();
  });
  on("only", "change", () => {
    // What was in the middle of the screen stays there.
    const middle = picked ?? spans[Math.floor((seen[0] + seen[1]) / 2)]?.at;
    redraw();
    select(spanOf[picked] ? picked : null, spanOf[picked] ? pinned : null);
    if (scrollY > 0 && middle !== undefined) nearest(middle)?.scrollIntoView({block: "center"});
  });
  on("items", "keydown", moveAmongItems);
  on("document", "keydown", moveInText);
  on("document", "click", ({target}) => {
    const at = segmentAt(target);
    if (at !== undefined && getSelection().isCollapsed) pick(picked === at ? null : at);
  });
  on("document", "mouseover", ({target}) => {
    const at = segmentAt(target);
    if (at !== undefined) target.title = describe(at);
  });
  document.addEventListener("keydown", ({key}) => key === "Escape" && select(null, null));
  on("curve", "click", goAlong);
  addEventListener("scroll", () => data && markSeen(), {passive: true});
  addEventListener("resize", () => data && drawChart());
  on("save-svg", "click", () => save(new Blob([written(figure())], {type: "image/svg+xml"}), "svg"));
  on("save-png", "click", savePicture);
  if (all.documents.length) open(0);
}

function open(number) {
  data = {query: null, about: "", marks: {}, shades: [], layers: [], items: [], parts: [], views: [], known: [true], sentences: [], reference: null, ...all.documents[number]};
  [picked, pinned, shown, stop, other] = [null, null, null, 0, null];
  numbers = new Map(isAbout.sentences ? data.items.flatMap(({links: [link]}, k) => (link?.to ?? []).map(i => [i, k])).reverse().sort(([i], [j]) => i - j) : []);
  document.title = byId("title").textContent = data.name;
  byId("query").textContent = data.query && `Query: ${data.query}`;
  byId("about").textContent = data.about;
  byId("reference-part").hidden = data.reference === null;
  byId("reference").textContent = (data.reference ?? "").replace(/\n\s*\n/g, "\n\n");
  byId("views").hidden = !data.views.length;
  byId("view").replaceChildren(...(data.views.length ? data.views : [""]).map(option));
  byId("view").value = data.copied ?? 0;
  byId("layers").hidden = !data.layers.length;
  byId("layer").max = byId("layer").value = data.layers.length - 1;
  const others = all.documents.flatMap(({name, query}, at) => at !== number && query && name === data.name ? [option(query, at)] : []);
  byId("comparison").hidden = !data.query || !others.length;
  byId("compare").replaceChildren(option("no other query", ""), ...others);
  byId("table-part").hidden = !data.table;
  if (data.table) drawTable(data.table);
  drawItems();
  drawText();
  drawSupport();
  show();
  select(null, null);
}
function drawTable({head, rows, go: places}) {
  const first = (text, at) => made("th", {scope: "row", dir: "auto"}, places ? link(text, () => go(places[at])) : text);
  byId("numbers").replaceChildren(
    made("thead", {}, made("tr", {}, ...head.map(cell => made("th", {scope: "col"}, cell)))),
    made("tbody", {}, ...rows.map(([text, ...cells], at) => made("tr", {}, first(text, at), ...cells.map(cell => made("td", {}, cell))))));
}
function link(textContent, follow) {
  const button = made("button", {className: "w", type: "button", dir: "auto", textContent});
  button.addEventListener("click", () => follow(button));
  return button;
}

// The text: in blocks that browsers lay out when they come into sight. Of sentences, it can be the chosen ones only.
function drawText() {
  const only = byId("only").checked && isAbout.sentences, sections = [], end = data.segments.length;
  const blocks = data.blocks.map(([tag, from, text], at) => ({tag, from, text, to: data.blocks[at + 1]?.[1] ?? end}));
  let paragraph = null, skipped = 0;
  const flush = to => {
    if (skipped) paragraph.append(paragraph.hasChildNodes() ? " " : "", gap(to - skipped, to));
    skipped = 0;
  };
  spanOf = [];
  blocks.forEach(({tag, from, text, to}, at) => {
    if (tag === "p" || tag === "query") {
      if (!sections.length) sections.push(made("section", {}));
      if (!only || !paragraph) sections.at(-1).append(paragraph = made("p", {dir: "auto", className: tag === "query" ? tag : ""}));
      if (!only && text) paragraph.dataset.number = text;
      for (let i = from; i < to; i++) {
        if (only && !numbers.has(i)) skipped += 1;
        else {
          flush(i);
          paragraph.append(...segment(i, !paragraph.hasChildNodes()));
        }
      }
      return;
    }
    const next = blocks.find(({tag}, place) => place > at && (tag === "h2" || tag === "h3"))?.from ?? end;
    if (only && tag === "h3" && !data.items.some(({links: [link]}) => link?.to.some(i => from <= i && i < next))) return;
    flush(from);
    paragraph = null;
    if (tag === "h2") sections.push(made("section", {}));
    if (text) sections.at(-1).append(made(tag, {dir: "auto"}, made("span", {textContent: text})));
  });
  flush(end);
  for (const [name, places] of Object.entries(data.marks)) places.forEach(i => spanOf[i].classList.add(name));
  byId("document").replaceChildren(...sections);
  spans = spanOf.filter(Boolean);
  nextFrame(markSeen);
}
function segment(i, isFirst) {
  const text = data.segments[i], word = text.trimStart(), before = text.slice(0, text.length - word.length);
  const span = spanOf[i] = made("span", {className: "s"}, word || (text && " "));
  span.at = i;
  const found = [isFirst ? "" : before.includes("\n") ? "\n" : word ? before : "", span];
  if (numbers.has(i)) {
    const badge = made("button", {className: "n", type: "button", tabIndex: -1, textContent: numbersOf(i), ariaLabel: `Sentence ${numbersOf(i)} of the summary`});
    badge.at = i;
    span.classList.add("chosen");
    found.splice(1, 0, badge);
  }
  return found;
}
function gap(from, to) {
  const button = made("button", {className: "gap", type: "button", textContent: `… ${many(to - from, kind.unit)}`});
  button.addEventListener("click", () => {
    byId("only").checked = false;
    redraw();
    go(from);
  });
  return button;
}
function redraw() {
  drawText();
  shade();
}
const segmentAt = target => (target.at === undefined ? target.closest?.(".s") : target)?.at;
const nearest = i => spanOf[i] ?? spans.find(({at}) => at >= i) ?? spans.at(-1);

// The slider, and shades of what is left.
function show() {
  data.profile = null;
  const about = data.layers[layer()];
  if (about) {
    byId("layer-label").textContent = about.label;
    byId("layer").setAttribute("aria-valuetext", about.label);
    byId("unknown-shades").textContent = about.shades === null
      ? "The pooling up to here keeps no record of which tokens its vectors are made of, so nothing can be shown." : "";
    document.querySelectorAll("#numbers tbody tr").forEach((row, i) => row.classList.toggle("now", i + 1 === layer()));
  }
  shade();
  drawChart();
}
function shade() {
  const values = valuesOf(data, layer()), others = other && compare();
  document.body.classList.toggle("compared", Boolean(others));
  if (!other) for (const id of ["changed", "passages"]) byId(id).replaceChildren();
  spans.forEach(span => {
    const own = values?.[span.at] ?? 0, theirs = others?.get(span.at) ?? 0;
    span.style.setProperty("--m", Math.max(0, (own - theirs) / 1000) ** kind.gamma);
    if (others) span.style.setProperty("--o", Math.max(0, (theirs - own) / 1000) ** kind.gamma);
    else span.style.removeProperty("--o");
  });
}

// The items: words of the summary, or its sentences. Of all of them the tabulator stops at one.
function drawItems() {
  buttons = data.items.map(({text}, k) => {
    const button = link("", () => pinned === k ? select(null, null) : pin(k));
    button.append(...(isAbout.sentences ? [made("span", {className: "n", textContent: k + 1})] : []), text.trim());
    button.tabIndex = k ? -1 : 0;
    button.setAttribute("aria-pressed", "false");
    if (isAbout.words) button.addEventListener("mouseenter", () => pinned === null && mark(k));
    if (isAbout.words) button.addEventListener("mouseleave", () => pinned === null && mark(null));
    button.addEventListener("focus", () => {
      buttons[stop].tabIndex = -1;
      button.tabIndex = 0;
      stop = k;
      if (isAbout.words && pinned === null) mark(k);
    });
    return button;
  });
  const list = byId("items");
  list.replaceChildren();
  list.scrollTop = 0;
  if (!isAbout.words) return list.append(made("ol", {}, ...buttons.map((button, k) => made("li", {}, button, made("span", {className: data.sentences?.[k]?.enough === false ? "beside alone" : "beside", textContent: data.items[k].note ?? ""})))));
  const parts = data.parts.length ? data.parts : [["", 0]];
  parts.forEach(([title, from], at) => {
    const paragraph = made("p", {dir: "auto"});
    for (let k = from; k < (parts[at + 1]?.[1] ?? buttons.length); k++)
      paragraph.append(paragraph.hasChildNodes() && data.items[k].text.startsWith(" ") ? " " : "", buttons[k]);
    list.append(...(title ? [made("h3", {textContent: title})] : []), paragraph);
  });
}
function moveAmongItems(event) {
  const forth = getComputedStyle(event.target.closest("p") ?? byId("items")).direction === "rtl" ? -1 : 1;
  const to = {ArrowRight: stop + forth, ArrowLeft: stop - forth, ArrowDown: stop + 1, ArrowUp: stop - 1, Home: 0, End: buttons.length - 1}[event.key];
  if (to === undefined || !buttons[to]) return;
  event.preventDefault();
  buttons[to].focus();
  if (pinned !== null) pin(to);
}
function moveInText(event) {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (!step || !spans.length) return;
  event.preventDefault();
  const now = spans.findIndex(({at}) => at === picked);
  go(spans[Math.min(Math.max(now < 0 ? seen[0] : now + step, 0), spans.length - 1)].at);
}

// A segment or an item can be picked; what it is linked to is marked, and told.
const pick = i => select(i, numbers.get(i) ?? null);
function pin(k) {
  const to = linkOf(k)?.to[0] ?? null;
  select(to, k);
  if (to !== null) go(to, k);
}
function go(i, k) {
  const span = nearest(i);
  if (!span) return;
  if (k === undefined) pick(span.at);
  bringToSight(span);
}
// What has come into sight is laid out in the next frame, and may then be taller than it was taken to be.
const nextFrame = what => requestAnimationFrame(() => requestAnimationFrame(what));
function bringToSight(span, times = 4) {
  const at = picked;
  span.scrollIntoView({block: "center"});
  if (times > 1) nextFrame(() => picked === at && span.isConnected && bringToSight(span, times - 1));
}
function select(i, k) {
  for (const element of [spanOf[picked], buttons[pinned]]) element?.classList.remove("picked", "pinned");
  buttons[pinned]?.setAttribute("aria-pressed", "false");
  [picked, pinned] = [i, k];
  spanOf[i]?.classList.add("picked");
  buttons[k]?.classList.add("pinned");
  buttons[k]?.setAttribute("aria-pressed", "true");
  mark(k);
  if (!buttons[k]) return;
  const list = byId("items"), [inside, outside] = [buttons[k], list].map(element => element.getBoundingClientRect());
  list.scrollTop += Math.min(inside.top - outside.top, Math.max(0, inside.bottom - outside.bottom));
}
function mark(k) {
  document.querySelectorAll("#document .linked, #items .linked").forEach(element => element.classList.remove("linked", "strongest"));
  const link = linkOf(k), known = data.known[Number(byId("view").value)], strongest = link?.shares?.[0] || 1;
  shown = k;
  if (isAbout.words && link) {
    link.to.forEach((i, rank) => {
      spanOf[i].classList.add("linked");
      spanOf[i].style.setProperty("--h", link.shares[rank] / strongest);
    });
    spanOf[link.to[0]].classList.add("strongest");
  }
  buttons[k]?.classList.add("linked");
  if (k === null && picked !== null && isAbout.words) for (const {k} of linkingTo(picked)) buttons[k].classList.add("linked");
  byId("unknown-links").textContent = known ? "" : "What single words drew on is not known: a pooling or the decoder's attention keeps no record of it.";
  byId("status").textContent = isAbout.words && link ? describeLink(k, link) : isAbout.words && showsCopies() && data.items[k] ? `${quoted(data.items[k].text)} was generated, not copied.` : picked !== null ? describe(picked) : isAbout.sentences && data.items[k] ? kind.alone ?? "" : known && data.segments.length ? kind.help : "";
  drawChart();
}
const linkingTo = i => data.items.flatMap((_, k) => {
  const link = linkOf(k), at = link ? link.to.indexOf(i) : -1;
  return at < 0 ? [] : [{k, share: link.shares[at] / 1e5}];
}).sort((one, other) => other.share - one.share);
const showsCopies = () => Number(byId("view").value) === data.copied;
function describeLink(k, {to, shares, covered, whole}) {
  const view = data.views[Number(byId("view").value)], where = view === undefined || byId("view").value === "0" ? "" : ` to ${view}`;
  const strongest = to.slice(0, 5).map((i, rank) => `${quoted(data.segments[i])} ${percent(shares[rank] / 1e5)}`).join(", ");
  if (showsCopies()) return `${quoted(data.items[k].text)} was copied with a probability of ${percent(whole)}: ${strongest}${to.length > 5 ? ` and ${to.length - 5} more` : ""}.`;
  return `${quoted(data.items[k].text)} drew most on ${strongest}. The ${to.length} ${kind.unit}s marked got ${percent(covered)} of its attention${where}.`;
}
function describe(i) {
  if (isAbout.words) {
    const left = valuesOf(data, layer())?.[i], words = linkingTo(i).map(({k, share}) => `${quoted(data.items[k].text)} ${percent(share)}`);
    const drew = words.length ? `${showsCopies() ? "Words copied from it" : "Words that drew on it"}: ${words.slice(0, 5).join(", ")}${words.length > 5 ? ` and ${words.length - 5} more` : ""}.` : showsCopies() ? "No word of the summary was copied from it." : "No word of the summary drew much on it.";
    return `${left === undefined ? "" : `${percent(left / 1000)} of ${quoted(data.segments[i])} is left. `}${drew}`;
  }
  const heading = data.blocks.findLast(([tag, from]) => tag === "h2" && from <= i)?.[2], number = numbers.get(i);
  const where = `Sentence ${count(i + 1)} of ${count(data.segments.length)}${heading ? `, in ${quoted(heading)}` : ""}`;
  const scored = !data.ranks ? "" : data.ranks[i] === null ? ": no score, never chosen" : `: score ${rounded(data.scores[i])}, rank ${count(data.ranks[i])}`;
  return `${where}${scored}.${number === undefined ? "" : ` ${kind.chosen ?? "Chosen"}: ${numbersOf(i)} of ${data.items.length} in the summary.`}`;
}
const numbersOf = i => data.items.flatMap(({links: [link]}, k) => link?.to.includes(i) ? [k + 1] : []).join(" and ");
const rounded = score => (score + 0).toLocaleString("en-US", {maximumSignificantDigits: Math.abs(score) < 1000 ? 3 : 6});

// Sentence by sentence: what of the document supports the summary. A click marks it, another lets it go.
function drawSupport() {
  let supported = null;
  const follow = (button, from, to) => {
    document.querySelectorAll(".supports").forEach(span => span.classList.remove("supports"));
    supported?.setAttribute("aria-pressed", "false");
    supported = supported === button ? null : button;
    if (!supported) return;
    button.setAttribute("aria-pressed", "true");
    spanOf.slice(from, to).forEach(span => span.classList.add("supports"));
    bringToSight(spanOf[from]);
  };
  byId("support-part").hidden = !data.sentences.length;
  byId("sentences").replaceChildren(...data.sentences.map(sentence => supportedSentence(sentence, ([from, to]) => {
    const button = link(data.segments.slice(from, to).join("").trim(), button => follow(button, from, to));
    button.setAttribute("aria-pressed", "false");
    return button;
  })));
}
