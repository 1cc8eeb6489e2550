// The pages without their search: light or dark, the language of samples, and buttons that copy code. All pages can be read
// without this script.
(function () {
"use strict";

const page = document.documentElement;
page.dataset.scripted = "";

// Choices of the reader, kept by the browser where it keeps anything for these pages.
function kept(key) {
  try { return localStorage.getItem("addend-" + key); } catch (refused) { return null; }
}
function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem("addend-" + key);
    else localStorage.setItem("addend-" + key, value);
  } catch (refused) { /* The choice holds for this page. */ }
}

// Light or dark: set before anything is drawn. The choice of the system is not kept, so that it can change.
const theme = kept("theme");
if (theme === "light" || theme === "dark") page.dataset.theme = theme;
function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, system = dark ? "dark" : "light";
  const chosen = (page.dataset.theme || system) === "dark" ? "light" : "dark";
  if (chosen === system) delete page.dataset.theme;
  else page.dataset.theme = chosen;
  keep("theme", chosen === system ? null : chosen);
}

// A button over each block of code. Pages of a file may have no clipboard, but a selection that can be copied.
function copy(text) {
  if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done ? Promise.resolve() : Promise.reject(new Error("not copied"));
}
function addCopyButton(block) {
  const frame = document.createElement("div"), button = document.createElement("button");
  frame.className = "code";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", () => copy(block.textContent).then(
    () => { button.textContent = "Copied"; }, () => { button.textContent = "Select and copy"; }
  ).then(() => setTimeout(() => { button.textContent = "Copy"; }, 2000)));
  block.replaceWith(frame);
  frame.append(block, button);
}

// Samples in several languages: tabs, all of which show the chosen language where they have it.
function show(language, groups) {
  for (const { samples, tabs } of groups) {
    if (!samples.some(sample => sample.dataset.language === language)) continue;
    samples.forEach((sample, k) => {
      const chosen = sample.dataset.language === language;
      sample.hidden = !chosen;
      tabs[k].setAttribute("aria-selected", chosen);
      tabs[k].tabIndex = chosen ? 0 : -1;
    });
  }
}
const all = [];
function choose(tab) {
  const before = tab.getBoundingClientRect().top;
  show(tab.textContent, all);
  keep("language", tab.textContent);
  // Other groups above may have changed their heights.
  scrollBy(0, tab.getBoundingClientRect().top - before);
}
function addTabs(group) {
  const samples = [...group.querySelectorAll(":scope > .sample")], list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  const tabs = samples.map(sample => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.textContent = sample.dataset.language;
    tab.setAttribute("role", "tab");
    sample.setAttribute("role", "tabpanel");
    sample.setAttribute("aria-label", sample.dataset.language);
    tab.addEventListener("click", () => choose(tab));
    return tab;
  });
  list.addEventListener("keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], at = tabs.indexOf(document.activeElement);
    if (!step || at < 0) return;
    const next = tabs[(at + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
  list.append(...tabs);
  group.prepend(list);
  all.push({ samples, tabs });
  show(samples[0].dataset.language, all.slice(-1));
}

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("site-theme").addEventListener("click", switchTheme);
  document.querySelectorAll("main pre:not(.out, .entry pre)").forEach(addCopyButton);
  document.querySelectorAll(".samples").forEach(addTabs);
  const language = kept("language");
  if (language) show(language, all);
  // A link into the page leads to its place after the heights have changed.
  if (location.hash) {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) target.scrollIntoView();
  }
});
})();
