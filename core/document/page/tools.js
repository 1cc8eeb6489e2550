// el("p.soft", child, ...) makes an element; strings become text nodes, never markup. Of an object before the children
// functions listen to events, other entries are attributes.
function el(tag, ...children) {
  var [name, style] = tag.split(".");
  var e = /^(svg|path|line|circle|text)$/.test(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  if (style) e.setAttribute("class", style);
  if (children[0] && children[0].constructor === Object) for (var [key, value] of Object.entries(children.shift())) {
    if (typeof value === "function") e.addEventListener(key, value); else e.setAttribute(key, value);
  }
  return add(e, children);
}
function add(parent, child) {
  if (Array.isArray(child)) child.forEach(c => add(parent, c));
  else if (child !== null && child !== undefined && child !== false) parent.append(child);
  return parent;
}
function byId(id) { return document.getElementById(id); }
function asSentence(text) { return text[0].toUpperCase() + text.slice(1) + "."; }
// [[name, text], ...] as a list of definitions.
function definitions(list) { return el("dl", list.map(([name, text]) => [el("dt", name), el("dd", text)])); }
// Gives an element the colour of a number's sign, the stronger the nearer it is to the largest.
function shaded(e, x, largest) {
  var strength = largest ? Math.round(70 * Math.abs(x) / largest) : 0;
  e.style.background = "color-mix(in srgb, var(" + (x < 0 ? "--down" : "--up") + ") " + strength + "%, transparent)";
  return e;
}
var MINUS = "\u2212";
function decimals(x) { x = Math.abs(x); return x > 0 ? Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(x)))) : 0; }
// Four significant digits of the largest number in the sum, for all of its numbers.
function shown(x, d, signed) {
  if (typeof x !== "number") return "not a number";
  if (x !== 0 && Math.abs(x) < 0.5 * 10 ** -d) return (signed && x > 0 ? "+" : "") + x.toExponential(1).replace(/-/g, MINUS);
  var text = Math.abs(x).toFixed(d);
  return (Number(text) === 0 ? "" : x < 0 ? MINUS : signed ? "+" : "") + text;
}
