// The search over all pages. Library and texts are read when somebody searches first, as scripts, so that pages of files can do
// it too. `?q=words` searches when the page opens.
(function () {
"use strict";

const MOST = 40;  // what is listed
const MOST_OF_PAGE = 3;
const LETTERS = 220;  // of an excerpt
const root = document.documentElement.dataset.root || "";
const field = document.getElementById("site-search"), list = document.getElementById("site-found");
const WORD = /[\p{L}\p{N}]+/gu;

let ready = null;  // a promise of `find`
let asked = 0;  // counts questions: only the answer to the last one is shown

function script(path) {
  return new Promise((done, failed) => {
    const element = document.createElement("script");
    element.src = root + path;
    element.onload = done;
    element.onerror = () => failed(new Error(path + " cannot be read"));
    document.head.append(element);
  });
}

const stems = new Map();
function stemOf(word) {
  let stem = stems.get(word);
  if (stem === undefined) stems.set(word, stem = lunr.stemmer(new lunr.Token(word.toLowerCase())).toString());
  return stem;
}

// Words of names in code count one by one: recovery_error, results.explain.
async function prepare() {
  await Promise.all([script("search/lunr.js"), script("search/pages.js")]);
  lunr.tokenizer.separator = /[^\p{L}\p{N}]/u;
  const builder = new lunr.Builder(), sections = [];
  builder.pipeline.add(lunr.stopWordFilter, lunr.stemmer);
  builder.ref("id");
  builder.field("title", { boost: 4 });
  builder.field("heading", { boost: 6 });
  builder.field("text");
  let pause = performance.now() + 30;
  for (const [page, title, weight, parts] of addendPages) {
    for (const [anchor, heading, text] of parts) {
      const section = { page, title, anchor, heading, text };
      builder.add({ id: sections.length, title, heading, text }, { boost: weight });
      sections.push(section);
      if (performance.now() > pause) {
        await new Promise(done => setTimeout(done, 0));
        pause = performance.now() + 30;
      }
    }
  }
  const index = builder.build();
  return (words, text) => find(index, sections, words, text);
}

// Sections that have all words, or their beginnings; where none has, those that have any. A heading that is the whole question
// comes first: the name of a function.
function find(index, sections, wanted, text) {
  function ask(presence) {
    return index.query(query => {
      for (const stem of wanted) {
        query.term(stem, { usePipeline: false, boost: 10 });
        query.term(stem, { usePipeline: false, wildcard: lunr.Query.wildcard.TRAILING, presence });
      }
    });
  }
  let found = ask(lunr.Query.presence.REQUIRED);
  if (!found.length) found = ask(lunr.Query.presence.OPTIONAL);
  found = found.map(one => sections[one.ref]);
  const same = section => section.heading.toLowerCase() === text.toLowerCase();
  const shown = new Map();
  return [...found.filter(same), ...found.filter(section => !same(section))].filter(section => {
    const number = shown.get(section.page) || 0;
    shown.set(section.page, number + 1);
    return number < MOST_OF_PAGE;
  }).slice(0, MOST);
}

function stemsOf(text) {
  const words = text.toLowerCase().match(WORD) || [];
  const telling = words.filter(word => lunr.stopWordFilter(new lunr.Token(word)));
  return [...new Set((telling.length ? telling : words).map(stemOf))];
}

function hits(text, wanted) {
  return [...text.matchAll(WORD)].map(match => {
    const stem = stemOf(match[0]);
    return { start: match.index, end: match.index + match[0].length, stem: wanted.find(one => stem.startsWith(one)) };
  }).filter(hit => hit.stem !== undefined);
}

// The part of a text that has most of the words, between whole words.
function excerpt(text, wanted) {
  const all = hits(text, wanted);
  let best = 0, most = 0;
  all.forEach((hit, k) => {
    const near = new Set();
    for (let j = k; j < all.length && all[j].end < hit.start + LETTERS; ++j) near.add(all[j].stem);
    if (near.size > most) [best, most] = [hit.start, near.size];
  });
  let start = Math.max(0, best - 60), end = Math.min(text.length, start + LETTERS);
  if (start) start = text.indexOf(" ", start) + 1;
  if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), start + 1);
  return [start ? "\u2026 " : "", text.slice(start, end), end < text.length ? " \u2026" : ""].join("");
}

function marked(element, text, wanted) {
  let end = 0;
  for (const hit of hits(text, wanted)) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(hit.start, hit.end);
    element.append(text.slice(end, hit.start), mark);
    end = hit.end;
  }
  element.append(text.slice(end));
  return element;
}

function linkTo(section, wanted) {
  const link = document.createElement("a"), heading = section.heading && section.heading !== section.title;
  link.href = root + section.page + (section.anchor ? "#" + encodeURIComponent(section.anchor) : "");
  link.append(marked(document.createElement("b"), heading ? section.heading : section.title, wanted));
  if (heading) {
    const page = document.createElement("i");
    page.textContent = " \u2014 " + section.title;
    link.append(page);
  }
  link.append(marked(document.createElement("span"), excerpt(section.text, wanted), wanted));
  link.addEventListener("click", close);
  return link;
}

function say(text) {
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  line.textContent = text;
  list.replaceChildren(line);
  list.hidden = false;
}

function close() {
  ++asked;
  list.hidden = true;
}

async function search() {
  const own = ++asked, text = field.value.trim();
  if (!text) return close();
  try {
    if (!ready) {
      say("Reading all pages \u2026");
      ready = prepare();
    }
    const finder = await ready;
    if (own !== asked) return;
    const wanted = stemsOf(text), found = wanted.length ? finder(wanted, text) : [];
    const number = `${found.length}${found.length === MOST ? " or more" : ""} ${found.length === 1 ? "place" : "places"}`;
    say(found.length ? number : "Nothing has these words.");
    list.append(...found.map(section => linkTo(section, wanted)));
    list.scrollTop = 0;
  } catch (problem) {
    ready = null;
    if (own === asked) say("The search does not work here: " + problem.message);
  }
}

function move(step) {
  const stops = [field, ...list.querySelectorAll("a")], next = stops[stops.indexOf(document.activeElement) + step];
  if (next) next.focus();
}

field.addEventListener("input", search);
field.addEventListener("focus", () => { if (field.value.trim() && list.hidden) search(); });
document.addEventListener("keydown", event => {
  const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) field.focus();
  else if (list.hidden) return;
  else if (event.key === "Escape") { close(); field.blur(); }
  else if (event.key === "ArrowDown" && list.parentNode.contains(document.activeElement)) move(1);
  else if (event.key === "ArrowUp" && list.parentNode.contains(document.activeElement)) move(-1);
  else if (event.key === "Enter" && document.activeElement === field && list.querySelector("a")) list.querySelector("a").click();
  else return;
  event.preventDefault();
});
document.addEventListener("click", event => { if (!list.parentNode.contains(event.target)) close(); });

const given = new URLSearchParams(location.search).get("q");
if (given) {
  field.value = given;
  search();
}
})();
