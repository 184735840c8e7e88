
// The name of a metric opens its definition next to it; without a script, or in a browser without popovers,
// it is a link to the list of definitions.

function definitions() {
  const box = document.getElementById("definition");
  if (!box || typeof box.showPopover !== "function") return;
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a.metric[href^="#metric-"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const entry = document.getElementById(decoded(link.getAttribute("href").slice(1)));
    if (!entry) return;
    event.preventDefault();
    const copy = element("dl", {}, ...[...entry.children].map((part) => part.cloneNode(true)));
    const all = element("a", { href: "#legend", onclick: () => box.hidePopover() }, "All metrics");
    box.replaceChildren(copy, element("p", { class: "small" }, all));
    // A popover is above everything but a dialog that was opened later, so it goes where its link is.
    (link.closest("dialog") || document.body).append(box);
    box.showPopover();
    const from = link.getBoundingClientRect();
    const { width, height } = box.getBoundingClientRect();
    const below = from.bottom + 6 + height < innerHeight || from.top < height + 12;
    box.style.left = Math.max(8, Math.min(from.left, innerWidth - width - 8)) + "px";
    box.style.top = Math.max(8, below ? from.bottom + 6 : from.top - height - 6) + "px";
    box.focus({ preventScroll: true });
  });
}
