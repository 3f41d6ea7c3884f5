"use strict";
(() => {
  const rows = [...document.querySelectorAll("#clause-rows > tr")];
  const text = document.getElementById("filter-text");
  const verdict = document.getElementById("filter-verdict");
  const count = document.getElementById("filter-count");
  const said = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const fits = (row) => {
    const found = row.dataset.verdicts.split(" ").filter(Boolean);
    const wanted = verdict.value;
    const kept = !wanted || (wanted === "bad" ? found.some((one) => one !== "conforms") : found.includes(wanted));
    return kept && said.get(row).includes(text.value.trim().toLowerCase());
  };
  const show = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !fits(row);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} clauses`;
  };
  document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
  text.addEventListener("input", show);
  verdict.addEventListener("change", show);
  // A page that is printed shows what is folded.
  const open = [];
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details:not([open])")) {
      one.open = true;
      open.push(one);
    }
  });
  addEventListener("afterprint", () => {
    for (const one of open.splice(0)) one.open = false;
  });
  show();
})();
