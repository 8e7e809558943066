"use strict";
const FIRST_ROWS = 200;  // shown until a reader asks for more, so that sorting stays quick
const collator = new Intl.Collator("en", {numeric: true});
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], nTexts = Number(table.dataset.texts);
  let rows = [...body.rows], most = FIRST_ROWS, wanted = "", show = () => {};
  if (rows.length > 20) {
    const controls = document.createElement("div"), status = document.createElement("output");
    const label = document.createElement("label"), input = document.createElement("input");
    const more = document.createElement("button");
    const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
    show = () => {
      let found = 0;
      for (const row of rows) row.hidden = !texts.get(row).includes(wanted) || ++found > most;
      const shown = Math.min(found, most), all = rows.length.toLocaleString("en");
      status.textContent = `${shown.toLocaleString("en")} of ${all} rows shown`;
      more.hidden = found <= most;
    };
    controls.className = "controls";
    input.type = "search";
    label.append("Filter rows ", input);
    more.type = "button";
    more.textContent = "Show all";
    input.addEventListener("input", () => { wanted = input.value.trim().toLowerCase(); show(); });
    more.addEventListener("click", () => { most = Infinity; show(); });
    controls.append(label, status, more);
    table.closest(".frame").prepend(controls);
    show();
  }
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const isText = column < nTexts, before = head.getAttribute("aria-sort");
    const sign = before === "none" ? (isText ? 1 : -1) : before === "ascending" ? -1 : 1;
    const keys = new Map(rows.map(row => {
      const text = row.cells[column].textContent.trim();
      return [row, isText ? text : parseFloat(text.replaceAll(",", ""))];
    }));
    rows.sort((one, other) => {
      const a = keys.get(one), b = keys.get(other);
      if (isText) return sign * collator.compare(a, b);
      if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
      return a === b ? 0 : sign * (a - b);
    });
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    show();
    body.replaceChildren(...rows);
  }));
}
