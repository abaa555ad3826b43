// SPDX-License-Identifier: GPL-2.0-or-later
// Joins the parts when the page has been read.

fillShown();
drawKeys();
fillRunChoice();
fillConfigs();
document.querySelectorAll("table[data-sortable]").forEach(sortable);
document.querySelectorAll(".scroll:not(.list)").forEach(hintAtWidth);
current = campaign.variants[0].median?.run ?? 0;
$("run-choice").value = current;
fillRun();
showCard();

chart("sawtooth", drawSawtooth);
if (campaign.causes) chart("causes-chart", drawCauses);
chart("run-chart", drawRun);
chart("curves", drawCurves);
chart("order-chart", drawOrder);

$("metric").addEventListener("change", drawOrder);
if ($("config-variant")) {
  $("config-variant").addEventListener("change", () => fillConfigs());
  $("config-filter").addEventListener("input", () => fillConfigs());
  $("config-more").addEventListener("click", () => fillConfigs(true));
}
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-open-run]");
  if (opener) {
    openRun(Number(opener.dataset.openRun), true);
    $("run-choice").focus({ preventScroll: true });
  }
  const zoomer = event.target.closest("[data-zoom]");
  if (zoomer) zoom(zoomer.dataset.zoom);
  const row = event.target.closest("#stalls tbody tr");
  if (row) chooseStall(Number(row.dataset.stall));
});
$("run-chart").addEventListener("keydown", (event) => {
  const kind = KEYS[event.key];
  if (kind && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    zoom(kind);
  }
});

dark.addEventListener("change", () => { drawKeys(); redrawAll(); });
let wasNarrow = narrow();
addEventListener("resize", () => {
  if (wasNarrow !== narrow()) { wasNarrow = narrow(); redrawAll(); }
});

// On paper: light, everything open, every chart drawn and as wide as the sheet.
function paper(is) {
  if (onPaper === is) return;
  onPaper = is;
  for (const details of document.querySelectorAll("details[data-print]")) {
    if (is && !details.open) { details.open = true; details.dataset.opened = ""; }
    else if (!is && "opened" in details.dataset) { details.open = false; delete details.dataset.opened; }
  }
  drawKeys();
  redrawAll(is);
}
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
print.addEventListener("change", (event) => paper(event.matches));
