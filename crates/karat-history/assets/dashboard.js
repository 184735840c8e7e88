// Theme, filter and sort. The pages are complete without it.
"use strict";

const root = document.documentElement;
const THEMES = ["auto", "light", "dark"];

// The same key as in the report, so that a choice holds for both. Storage may be refused.
const memory = {
  get theme() { try { return localStorage.getItem("karat-theme"); } catch { return null; } },
  set theme(name) { try { localStorage.setItem("karat-theme", name); } catch { /* the choice is not kept */ } },
};

function wear(name) {
  root.toggleAttribute("data-theme", name !== "auto");
  if (name !== "auto") root.dataset.theme = name;
}

let worn = THEMES.includes(memory.theme) ? memory.theme : "auto";
wear(worn);
root.classList.add("scripted");

function themeButton(button) {
  const say = () => { button.textContent = "Theme: " + worn; };
  say();
  button.hidden = false;
  button.addEventListener("click", () => {
    worn = THEMES[(THEMES.indexOf(worn) + 1) % THEMES.length];
    memory.theme = worn;
    wear(worn);
    say();
  });
}

function sortable(table) {
  const body = table.tBodies[0];
  for (const head of table.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      body.append(...[...body.rows].sort(order(head.cellIndex, head.dataset.sort, falling ? -1 : 1)));
    });
  }
}

// Rows without a value come last in both directions.
function order(column, kind, sign) {
  const key = (row) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (kind === "text") return text;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };
  return (one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * ((a > b) - (a < b));
  };
}

function filtered(table) {
  const [text, state, subject, count, nothing, branch] = ["text", "state", "subject", "count", "nothing", "branch"].map((id) => document.getElementById("filter-" + id));
  const runs = [...table.tBodies[0].rows];
  const words = runs.map((row) => row.textContent.toLowerCase());
  const apply = () => {
    const wanted = text.value.trim().toLowerCase();
    let left = 0;
    runs.forEach((row, at) => {
      const fits = words[at].includes(wanted)
        && (state.value === "" || row.dataset.state === state.value)
        && (!branch || branch.value === "" || row.dataset.branch === branch.value)
        && (subject.value === "" || row.dataset.subjects.includes(" " + subject.value + " "));
      row.hidden = !fits;
      if (fits) left += 1;
    });
    nothing.hidden = left > 0;
    count.textContent = left === runs.length ? left + " runs" : left + " of " + runs.length + " runs";
  };
  for (const field of [text, state, subject, branch].filter(Boolean)) field.addEventListener("input", apply);
  apply();
}

// Fades the points and hides the rows of other branches.
function branches(select) {
  select.addEventListener("input", () => {
    const other = (node) => select.value !== "" && node.dataset.branch !== select.value;
    for (const point of document.querySelectorAll(".over a[data-branch]")) point.classList.toggle("faded", other(point));
    for (const row of document.querySelectorAll("tr[data-branch]")) row.hidden = other(row);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  themeButton(document.getElementById("theme"));
  const branch = document.getElementById("branch");
  if (branch) branches(branch);
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  for (const table of document.querySelectorAll("table.filtered")) filtered(table);
});
