const percent = (share, digits) => share === null ? "–" : (100 * share).toFixed(digits) + "%";
const BINS = 120;

byId("how").textContent = "Followed are the vectors that pooling selects and mixes, and the decoder's attention to them " +
  "(mean of its layers and heads). The encoder's attention mixes tokens, too, and is not followed: a vector may know " +
  "more than the tokens that it is made of.";
// A document is read in one piece or several: its tokens are theirs, and so are its figures.
function joined(about) {
  const pieces = about.pieces, starts = [];
  let length = 0;
  for (const piece of pieces) {
    starts.push(length);
    length += piece.document.length;
  }
  const layers = pieces[0].layers.map((_, i) => {
    const of = pieces.map(piece => piece.layers[i]);
    const mean = key => {
      const known = of.filter(layer => layer[key] !== null);
      const weight = layer => key === "sharpness" ? layer.handed_on : layer.received;
      return known.length ? sum(known, layer => weight(layer) * layer[key]) / sum(known, weight) : null;
    };
    return {
      received: sum(of, layer => layer.received), handed_on: sum(of, layer => layer.handed_on),
      sharpness: mean("sharpness"), share_for_half: mean("share_for_half"),
      reached: of.some(layer => layer.reached === null) ? null : pieces.flatMap((piece, at) => piece.reached[of[at].reached]),
    };
  });
  return {
    name: about.name, query: about.query ?? "", missing: about.missing, starts, layers, pieces: pieces.length,
    tokens: sum(pieces, piece => piece.tokens), read: sum(pieces, piece => piece.read),
    document: pieces.flatMap(piece => piece.document), traced: pieces.every(piece => piece.traced),
    memories: memoriesOf(pieces), global: new Set(pieces.flatMap((piece, at) => (piece.seen_by_all ?? []).map(token => token + starts[at]))),
    asked: pieces.map(piece => piece.asked ?? 0),
    sentences: pieces.flatMap((piece, at) => supportsOf(piece, starts[at])),
    words: pieces.flatMap((piece, at) => piece.words.map(word => ({
      ...word, piece: at, drew: drewFrom(word.drew, starts[at]), each: (word.drew_on_each ?? []).map(drew => drewFrom(drew, starts[at])),
    }))),
  };
}

let buttons, stops, shares, shown, pinned, stop;
function open(number) {
  data = joined(all.documents[number]);
  offerComparison(number);
  offerMemories();
  shown = pinned = null;
  stop = 0;
  stops = [{handed_on: data.read, everything: true}, ...data.layers];
  document.title = byId("title").textContent = data.name;
  byId("query").textContent = data.query && `Query: ${data.query}`;
  byId("read").textContent = told();
  drawDocument();
  drawSummary();
  drawSupport();
  byId("numbers").tBodies[0].replaceChildren(...data.layers.map((layer, i) => {
    const kept = layer.handed_on / layer.received;
    const cells = [i + 1, count(layer.received), count(layer.handed_on), percent(kept, 1), percent(layer.sharpness, 1), percent(layer.share_for_half, 1)];
    return made("tr", {}, ...cells.map(textContent => made("td", {textContent})));
  }));
  byId("layer").max = data.layers.length;
  byId("x-end").textContent = count(spans.length);
  sayWhetherTraced();
  show(data.layers.length);
  draw(null);
  markSeen();
}
function told() {
  if (data.missing) return `The first ${data.pieces} of ${data.pieces + data.missing} pieces are shown: the page is full.`;
  const whole = data.read < data.tokens
    ? `The first ${count(data.read)} of ${count(data.tokens)} tokens were read; the rest was cut off.`
    : `All ${count(data.tokens)} tokens were read`;
  const end = data.read < data.tokens ? "" : data.pieces > 1 ? `, in ${data.pieces} pieces that were summarized one by one.` : ".";
  return `${whole}${end}${data.query ? " Those of the query are among them." : ""}`;
}

// A paragraph of the document is one of the page, and so is a line; a token is a span, without the space before it.
function drawDocument() {
  const sections = [];
  let paragraph;
  spans = data.document.map((text, i) => {
    const word = text.trimStart(), before = text.slice(0, text.length - word.length), starts = data.starts[sections.length] === i;
    const asked = data.asked[sections.length - !starts], at = starts ? 0 : i - data.starts[sections.length - 1];
    if (starts) {
      sections.push(made("section", {}));
      if (data.pieces > 1) sections.at(-1).append(made("h3", {textContent: `Piece ${sections.length} of ${data.pieces}`}));
    }
    if (starts || at === asked || before.startsWith("\n\n"))
      sections.at(-1).append(paragraph = made("p", {dir: "auto", className: at < asked ? "query" : ""}));
    else if (before.startsWith("\n")) paragraph.append("\n");
    else if (text === "") paragraph.append(at < asked ? "" : " ");
    else if (word) paragraph.append(before);
    // The end of a query is the end of its paragraph.
    const span = made("span", text === "" ? {className: "t mark", textContent: at < asked ? "" : "¶"} : {className: "t", textContent: word || " "});
    span.classList.toggle("global", data.global.has(i));
    paragraph.append(span);
    return span;
  });
  byId("document").replaceChildren(...sections);
}
byId("document").addEventListener("mouseover", event => {
  const at = spans.indexOf(event.target);
  if (at >= 0) spans[at].title = shares ? `${percent(shares[at] / 1000, 1)} of ${quoted(data.document[at])} is left` : "";
});

// The chart: what is left, as the mean of the tokens of each stretch, and the attention that goes to each stretch.
function axisEnd(heights) {
  const top = 100 * Math.max(...heights);
  return `${top >= 99.95 ? 100 : top >= 1 ? top.toFixed(1) : top.toPrecision(2)}%`;
}

// The slider: 0 is the input, then every layer.
function show(number) {
  const layer = stops[number], values = layer.everything ? spans.map(() => 1000) : layer.reached;
  byId("layer").value = number;
  shares = values;
  const what = number === 0 ? "The input" : `After layer ${number} of ${data.layers.length}`;
  const label = `${what}: ${many(layer.handed_on, "vector")}`;
  byId("layer-label").textContent = label;
  byId("layer").setAttribute("aria-valuetext", label);
  const others = compared(number);
  spans.forEach((span, i) => {
    const own = values ? values[i] : 0, other = others?.get(i) ?? 0;
    span.style.setProperty("--m", Math.sqrt(Math.max(0, own - other) / 1000));
    span.style.setProperty("--o", Math.sqrt(Math.max(0, other - own) / 1000));
  });
  const heights = values ? binned(Math.min(BINS, spans.length), spans.length, values.entries(), true).map(share => share / 1000) : null;
  byId("area").setAttribute("d", heights ? `M0 ${plot.high}${steps(heights)}L${plot.wide} ${plot.high}Z` : "");
  byId("left-top").textContent = heights ? axisEnd(heights) : "";
  byId("no-provenance").textContent = values ? "" :
    "The pooling up to here keeps no record of which tokens its vectors are made of, so nothing can be shown.";
  document.querySelectorAll("#numbers tbody tr").forEach((row, i) => row.classList.toggle("now", i + 1 === number));
}
byId("layer").addEventListener("input", () => show(Number(byId("layer").value)));

// The summary, a button a word; of a document in pieces, that of each piece under its number.
const help = "Tap or point at a word, or move with the arrow keys, to see what it drew on. A click or Enter keeps it and " +
  "goes to the strongest token; Escape or another click lets it go.";
function drawSummary() {
  buttons = data.words.map((word, i) => {
    const button = made("button", {className: "w", type: "button", textContent: word.text.trim(), tabIndex: i === stop ? 0 : -1});
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("mouseenter", () => pinned === null && draw(i));
    button.addEventListener("mouseleave", () => pinned === null && draw(null));
    button.addEventListener("focus", () => {
      // Of all words the tabulator stops at one, where the reader was last.
      buttons[stop].tabIndex = -1;
      button.tabIndex = 0;
      stop = i;
      if (pinned === null) draw(i);
    });
    button.addEventListener("click", () => pin(pinned === i ? null : i));
    return button;
  });
  byId("summary").replaceChildren();
  for (let piece = 0; piece < data.pieces; piece++) {
    if (data.pieces > 1) byId("summary").append(made("h3", {textContent: `Piece ${piece + 1} of ${data.pieces}`}));
    const paragraph = made("p", {dir: "auto"});
    buttons.forEach((button, i) => {
      if (data.words[i].piece === piece) paragraph.append(paragraph.hasChildNodes() && data.words[i].text.startsWith(" ") ? " " : "", button);
    });
    byId("summary").append(paragraph);
  }
  byId("summary").scrollTop = 0;
}
byId("summary").addEventListener("keydown", event => {
  const on = getComputedStyle(event.target.closest("p") ?? byId("summary")).direction === "rtl" ? -1 : 1;
  const to = {ArrowRight: stop + on, ArrowLeft: stop - on, Home: 0, End: buttons.length - 1}[event.key];
  if (to === undefined || !buttons[to]) return;
  event.preventDefault();
  buttons[to].focus();
  if (pinned !== null) pin(to);
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape") pin(null);
});

function draw(i) {
  if (shown !== null) {
    buttons[shown].classList.remove("on");
    document.querySelectorAll(".t.drew").forEach(span => span.classList.remove("drew", "strongest"));
  }
  shown = i;
  const drew = i === null ? null : drewOn(data.words[i]);
  if (i !== null) buttons[i].classList.add("on");
  byId("line").setAttribute("d", "");
  for (const id of ["right-label", "right-top", "right-zero"]) byId(id).textContent = "";
  if (!drew) {
    byId("status").textContent = isTraced() ? help : "";
    return;
  }
  const most = drew.shares[0] || 1;
  drew.tokens.forEach((token, rank) => {
    spans[token].classList.add("drew");
    spans[token].style.setProperty("--h", drew.shares[rank] / most);
  });
  spans[drew.tokens[0]].classList.add("strongest");
  const heights = binned(Math.min(BINS, spans.length), spans.length, drew.tokens.map((token, rank) => [token, drew.shares[rank] / 1e5]), false);
  byId("line").setAttribute("d", "M" + steps(heights).slice(1));
  byId("right-label").textContent = `attention of ${quoted(data.words[i].text.trim().slice(0, 16))} (sum)`;
  byId("right-top").textContent = axisEnd(heights);
  byId("right-zero").textContent = "0";
  const strongest = drew.tokens.slice(0, 5).map((token, rank) =>
    `${quoted(data.document[token])} ${percent(drew.shares[rank] / 1e5, 1)}`).join(", ");
  byId("status").textContent = `${quoted(data.words[i].text)} drew most on ${strongest}. The ${drew.tokens.length} tokens ` +
    `marked got ${percent(drew.covered, 1)} of its attention${memory === null ? "" : ` to ${named(data.memories[memory])}`}.`;
}
function pin(i) {
  if (pinned !== null) {
    buttons[pinned].classList.remove("pinned");
    buttons[pinned].setAttribute("aria-pressed", "false");
  }
  pinned = i;
  draw(i);
  if (i === null) return;
  buttons[i].classList.add("pinned");
  buttons[i].setAttribute("aria-pressed", "true");
  const drew = drewOn(data.words[i]);
  if (drew) spans[drew.tokens[0]].scrollIntoView({block: "center"});
}

// The chart is the way to a place in the document, and says which part of it is on the screen.
byId("curve").addEventListener("click", event => {
  const box = byId("plot").querySelector(".frame").getBoundingClientRect();
  const token = Math.floor((event.clientX - box.left) / box.width * spans.length);
  spans[Math.min(Math.max(token, 0), spans.length - 1)].scrollIntoView({block: "center"});
});
function markSeen() {
  seen = onScreen();
  byId("seen").setAttribute("x", plot.wide * seen[0] / spans.length);
  byId("seen").setAttribute("width", plot.wide * (seen[1] - seen[0]) / spans.length);
}
addEventListener("scroll", markSeen, {passive: true});
addEventListener("resize", markSeen);

function figure() {
  const [from, to] = seen[0] < seen[1] ? seen : [0, Math.min(300, spans.length)], ground = `rgba(${colour("--orange")}, .5)`;
  const legend = shown === null ? "." : `, orange: what ${quoted(data.words[shown].text)} drew on.`;
  return drawFigure({
    note: `${data.query && `Query: ${data.query} `}${byId("layer-label").textContent}. Blue: how much is left of a token${legend}`,
    shown: spans.slice(from, to),
    words: data.words.map(({text}, i) => ({text: text.trim(), apart: text.startsWith(" "), ground: i === shown && ground})),
  });
}
begin();
