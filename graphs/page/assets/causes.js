// SPDX-License-Identifier: GPL-2.0-or-later
// Why it stalled: a bar a variant, cut by cause, with the colours and hatches of causes.png.

function drawCauses() {
  const colours = theme(), { causes, totals, words } = campaign.causes;
  const drawn = [...shown].reverse(); // the first variant is at the top
  const room = narrow() ? 110 : 190;
  const traces = causes.map(({ name, colour, ink, shape, seconds }) => ({
    type: "bar", orientation: "h", name: literal(name), y: drawn.map((_, place) => place),
    x: drawn.map((variant) => seconds[variant] ?? 0),
    marker: { color: colour, line: { color: ink, width: 1 },
      pattern: { shape, bgcolor: colour, fgcolor: ink, size: 8, solidity: 0.25, fillmode: "replace" } },
    text: drawn.map((variant) => {
      const value = seconds[variant], whole = totals[variant];
      return whole ? `${value.toFixed(1)} s (${((100 * value) / whole).toFixed(0)} %)` : "";
    }),
    textposition: "none",
    hovertemplate: drawn.map((variant) =>
      `${literal(campaign.variants[variant].label)}: ${literal(name)} %{text}<extra></extra>`),
  }));
  const legend = 22 * Math.ceil(causes.length / (narrow() ? 1 : 6)) + 16;
  const layout = baseLayout(colours, drawn.length * 34 + legend + 70);
  layout.barmode = "stack";
  layout.bargap = 0.34;
  layout.margin = { l: room, r: words.some(([, runs]) => runs) ? 90 : 66, t: 4, b: legend + 56 };
  layout.showlegend = true;
  layout.legend = { orientation: "h", traceorder: "normal", itemclick: false, itemdoubleclick: false,
    font: { size: 12 }, x: 0, xref: "container", yref: "container", y: 0, yanchor: "bottom",
    maxheight: legend + 20 };
  layout.xaxis = { ...baseAxis(colours), nticks: narrow() ? 4 : 8, rangemode: "tozero",
    title: { text: literal(`stalled seconds a run${campaign.words.addedUp}`), font: { size: 12 }, standoff: 14 } };
  layout.yaxis = { ...baseAxis(colours), showgrid: false, range: [-0.5, drawn.length - 0.5],
    tickmode: "array", tickvals: drawn.map((_, place) => place),
    ticktext: drawn.map((variant) => literal(fit(campaign.variants[variant].label, room - 14))) };
  layout.annotations = drawn.map((variant, place) => ({
    x: totals[variant] ?? 0, y: place, xanchor: "left", xshift: 3, showarrow: false,
    text: words[variant][0] === "" ? "no whole run with evidence"
      : words[variant].filter((part) => part).map(literal).join("<br>"),
    font: { size: 11, color: colours.text } }));
  plot("causes-chart", traces, layout);
}
