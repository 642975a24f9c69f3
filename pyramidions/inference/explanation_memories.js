// What the decoder reads beside the encoder's output: which of these memories a word drew on can be chosen.
let memory = null;
const memoriesOf = pieces => (pieces[0].memories ?? []).map(({layer}, i) => ({
  layer, vectors: sum(pieces, piece => piece.memories[i].vectors), traced: pieces.every(piece => piece.memories[i].traced),
}));
const drewFrom = (drew, start) => drew && {...drew, tokens: drew.tokens.map(token => token + start)};
const drewOn = word => memory === null ? word.drew : word.each[memory];
const isTraced = () => memory === null ? data.traced : data.memories[memory].traced;
const named = ({layer, vectors}) => layer === null ? `the encoder's output (${many(vectors, "vector")})` : `layer ${layer} (${many(vectors, "vector")})`;

function offerMemories() {
  memory = null;
  byId("memories").hidden = !data.memories.length;
  const each = data.memories.map((read, value) => ({value, textContent: named(read)}));
  byId("memory").replaceChildren(...[{value: "", textContent: "all that the decoder reads (mean)"}, ...each].map(option => made("option", option)));
}
byId("memory").addEventListener("change", () => {
  const chosen = byId("memory").value;
  memory = chosen === "" ? null : Number(chosen);
  sayWhetherTraced();
  draw(shown);
});
function sayWhetherTraced() {
  byId("no-attention").textContent = isTraced() ? "" :
    "What single words drew on is not known: a pooling or the decoder's attention keeps no record of it.";
}
