"use strict";
// The page is complete without this script. The script sorts a table when a heading is pressed, filters the rows of a long
// table by the words in its search field, and copies commands.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  table.classList.add("sortable");
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, at) => (row.cells[at] ? row.cells[at].textContent.trim() : "");
  // The number at the beginning of a cell: "1.5 ± 0.2 %" sorts by 1.5.
  const number = (text) => parseFloat(text.replace(/\u2212/g, "-").replace(/[, \u202f]/g, ""));
  heads.forEach((head, at) => {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("number");
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a, at), key(b, at)];
        if (!numeric) return (down ? -1 : 1) * x.localeCompare(y, "en", { numeric: true });
        const [p, q] = [number(x), number(y)];
        // Absent values stay at the end.
        if (isNaN(p) || isNaN(q)) return isNaN(p) - isNaN(q);
        return down ? q - p : p - q;
      });
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
  if (body.rows.length <= 12) continue;
  const wish = document.createElement("input");
  wish.type = "search";
  wish.placeholder = "Only rows with, e.g. drf slot:12";
  wish.setAttribute("aria-label", "Only rows whose name has one of these words");
  wish.addEventListener("input", () => {
    const words = wish.value.toLowerCase().split(/\s+/).filter((word) => word);
    for (const row of body.rows) row.hidden = words.length > 0 && !words.some((word) => key(row, 0).toLowerCase().includes(word));
  });
  table.parentElement.before(wish);
}
for (const pre of document.querySelectorAll("pre.copy")) {
  if (!navigator.clipboard) break;
  const hold = document.createElement("div");
  hold.className = "hold";
  pre.replaceWith(hold);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", () => navigator.clipboard.writeText(pre.textContent).then(() => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }));
  hold.append(pre, button);
}
