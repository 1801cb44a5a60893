// The list of operations can be searched, and is closed at first where it would fill the screen. Without this script
// the page is all there, too.
"use strict";

const search = document.querySelector(".search");
const input = search.querySelector("input");
const found = document.getElementById("found");
const menu = document.querySelector(".menu");
const articles = [...document.querySelectorAll("article[data-search]")];
const wide = matchMedia("(min-width: 64rem)");

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const article of articles) {
    const match = words.every((word) => article.dataset.search.includes(word));
    article.hidden = !match;
    document.querySelector(`[data-op="${article.id}"]`).hidden = !match;
    count += match;
  }
  for (const group of document.querySelectorAll("section.group")) {
    const empty = !group.querySelector("article:not([hidden])");
    group.hidden = empty;
    document.querySelector(`nav a[href="#${group.id}"]`).parentElement.hidden = empty;
  }
  found.textContent = words.length ? `${count} of ${articles.length}` : "";
}

// show makes sure that what a link leads to is there.
function show() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.closest("[hidden]")) {
    input.value = "";
    filter();
    target.scrollIntoView();
  }
}

search.hidden = false;
input.addEventListener("input", filter);
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== input && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    menu.open = true;
    input.focus();
  } else if (event.key === "Escape" && event.target === input) {
    input.value = "";
    filter();
  }
});
menu.open = wide.matches;
wide.addEventListener("change", () => { menu.open = wide.matches; });
menu.addEventListener("click", (event) => {
  if (!wide.matches && event.target.closest("ul a")) {
    menu.open = false;
  }
});
filter();
