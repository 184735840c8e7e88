
// Puts the page together: theme, tables under their headings, addresses, printing.

async function start() {
  theme();
  const note = document.getElementById("no-tables");
  note.hidden = true;
  await painted();
  let reports;
  try {
    reports = await load();
  } catch (error) {
    // Browsers before 2023 cannot unpack the data.
    note.textContent = "This browser cannot show the tables of slices and items (" + visible(error.message) + "); everything above is complete.";
    note.hidden = false;
    return;
  }
  const inspector = new Inspector(document.getElementById("inspector"));
  const tables = new Map();
  for (const report of reports) {
    const place = document.getElementById("items-" + report.head.slug);
    if (!place) continue;
    const slices = slicesOf(report);
    if (slices) place.append(slices);
    const table = new ItemTable(report);
    tables.set(report.head.slug, table);
    place.append(table.root);
    place.hidden = false;
    table.draw();
  }
  document.documentElement.classList.add("scripted");
  addresses(tables, inspector);
  definitions();
  keys();
  printing([...tables.values()]);
}

// Waits until the first screen is painted, which unpacking the data would delay. A page in a background
// tab is not painted, so it does not wait for long.
function painted() {
  return new Promise((done) => {
    requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, 300);
  });
}

// #report/item opens an item, #items-report?property=value lists some; any other address is a place on
// the page.
function addresses(tables, inspector) {
  const list = (hash) => {
    const cut = hash.indexOf("?");
    const table = cut > 0 && hash.startsWith("#items-") ? tables.get(hash.slice(7, cut)) : undefined;
    if (!table) return false;
    const pairs = hash.slice(cut + 1).split("&").map((pair) => pair.split("=").map(decoded));
    inspector.close();
    table.filter(new Map(pairs.filter((pair) => pair.length === 2)));
    table.root.parentNode.scrollIntoView();
    table.view.focus({ preventScroll: true });
    return true;
  };
  const follow = () => {
    const hash = location.hash;
    if (list(hash)) return;
    const cut = hash.indexOf("/");
    const table = cut > 0 ? tables.get(hash.slice(1, cut)) : undefined;
    if (!table) {
      inspector.close();
      const place = hash.length > 1 && document.getElementById(decoded(hash.slice(1)));
      if (place) place.scrollIntoView();
      return;
    }
    inspector.open(table, decoded(hash.slice(cut + 1)));
  };
  window.addEventListener("hashchange", follow);
  follow();
}

// A slash focuses the nearest search.
function keys() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, dialog")) return;
    const distance = (input) => Math.abs(input.getBoundingClientRect().top - innerHeight / 2);
    const [nearest] = [...document.querySelectorAll(".explore input[type=search]")].sort((a, b) => distance(a) - distance(b));
    if (!nearest) return;
    event.preventDefault();
    nearest.focus();
  });
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function theme() {
  const button = document.getElementById("theme");
  const names = ["auto", "light", "dark"];
  const set = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = "Theme: " + name;
  };
  let name = "auto";
  // A page from disk may not be allowed to store anything.
  try {
    const kept = localStorage.getItem("karat-theme");
    if (names.includes(kept)) name = kept;
  } catch { /* the choice is not kept */ }
  set(name);
  button.hidden = false;
  button.addEventListener("click", () => {
    name = names[(names.indexOf(name) + 1) % names.length];
    set(name);
    try {
      localStorage.setItem("karat-theme", name);
    } catch { /* as above */ }
  });
}

// On paper everything is open, and the tables show their first rows.
function printing(tables) {
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    for (const details of closed) details.open = true;
    for (const table of tables) table.print();
  });
  window.addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
    for (const table of tables) table.printed();
  });
}

start();
