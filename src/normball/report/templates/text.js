// Names are data of strangers: in the page they are set as text; in plots, which read a little HTML, they pass here.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 600px)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

function shorten(text, limit) {
  if (!text.trim()) return "(no name)";
  if (text.length <= limit) return text;
  const kept = Array.from(text.slice(0, 2 * limit));
  return kept.length <= limit && text.length <= 2 * limit ? text : kept.slice(0, limit - 1).join("").trimEnd() + "…";
}

// For plots: short, without markup, and closed in itself where it runs from right to left.
function plain(text, limit = narrow.matches ? 16 : 26) {
  const kept = shorten(text, limit);
  const safe = kept.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;"); // nor TeX
  return RIGHT_TO_LEFT.test(kept) ? "\u2068" + safe + "\u2069" : safe;
}

function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(1).replace("-", "−");
  return String(+value.toPrecision(digits)).replace("-", "−");
}

const percent = (value, digits = 0) => (value === null ? "–" : (100 * value).toFixed(digits) + " %");
const className = (i) => (i < 0 ? "unknown" : data.classes[i]);
const colour = (i) => (i < 0 ? "#777777" : data.colours[i % data.colours.length]);
const turn = (i) => Math.max(0, i + Math.floor(i / data.colours.length)); // beyond the last colour, other symbols
const symbol = (i) => data.symbols[turn(i) % data.symbols.length];
const range = (n) => Array.from({ length: n }, (_, i) => i);

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
