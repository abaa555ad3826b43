// SPDX-License-Identifier: GPL-2.0-or-later
// The charts of the whole campaign: sawtooth, distribution, order; sorting; config differences.

const TIME = "time since the start of the workload (s)";

// ---- sawtooth: one panel a variant, on the same axes
function drawSawtooth() {
  const colours = theme();
  const drawn = shown.filter((variant) => campaign.variants[variant].median);
  const across = narrow() || drawn.length <= 4 ? 1 : 2;
  const down = Math.max(1, Math.ceil(drawn.length / across));
  const panel = { 1: 380, 2: 215, 3: 155, 4: 122 }[down] ?? 92;
  const bottom = 38, height = down * panel + bottom + 6;
  const traces = [], layout = baseLayout(colours, height);
  layout.margin = { l: 44, r: 8, t: 4, b: bottom };
  layout.annotations = [];
  let right = 1, top = 0.1;
  drawn.forEach((variant, place) => {
    const { median, label } = campaign.variants[variant];
    const stream = runPart(median.run).streams[median.stream];
    const row = Math.floor(place / across), column = place % across;
    const n = place ? place + 1 : "", { colour } = look(variant);
    const span = 1 / down, gap = Math.min(0.3 * span, 22 / height);
    const y0 = 1 - (row + 1) * span, domain = [y0 + gap * 0.2, y0 + span - gap];
    const width = 1 / across, x0 = column * width;
    right = Math.max(right, (stream.last + stream.open) / 1000);
    top = Math.max(top, stream.worst / 1000);
    traces.push({ ...teeth(stream), type: "scatter", mode: "lines", xaxis: `x${n}`, yaxis: `y${n}`,
      line: { color: colour, width: 1.1 }, run: median.run, stream: median.stream,
      hovertemplate: "%{x:.1f} s: gap %{y:.3f} s<extra></extra>" });
    if (stream.open >= 500) traces.push(openTrace(stream, `x${n}`, `y${n}`, 0, median));
    const isLowest = place + across >= drawn.length;
    layout[`xaxis${n}`] = { ...baseAxis(colours), anchor: `y${n}`, matches: place ? "x" : undefined,
      fixedrange: false, domain: [x0 + (column ? 0.02 : 0), x0 + width - 0.004],
      showticklabels: isLowest, title: isLowest && column === 0
        ? { text: TIME, font: { size: 11 }, standoff: 6 } : undefined };
    layout[`yaxis${n}`] = { ...baseAxis(colours), anchor: `x${n}`, domain, nticks: 4,
      showticklabels: column === 0, rangemode: "tozero" };
    const told = (name) => `, run ${campaign.runs[median.run].number}${name}, worst ${median.worst}`
      + (median.state === "completed" ? "" : `, ${median.state}`);
    const panelWidth = ($("sawtooth").clientWidth - 52) / across - 8;
    const roomBeside = (words) => {
      fit("", 0); // sets the font that is measured
      return panelWidth - pencil.measureText(words).width - 12;
    };
    // Where there is little room a whole label says more than the stream's name.
    let words = told(`, ${median.name}`);
    if (fit(label, roomBeside(words), true) !== label) words = told("");
    const room = roomBeside(words);
    layout.annotations.push({ xref: `x${n} domain`, yref: `y${n} domain`, x: 0, y: 1,
      xanchor: "left", yanchor: "bottom", showarrow: false, align: "left", yshift: -1,
      font: { size: 11, color: colours.text },
      text: `<b>${literal(fit(label, room, true))}</b>${literal(words)}` });
  });
  layout.annotations.push({ xref: "paper", yref: "paper", x: 0, y: 0.5, xshift: -42, textangle: -90,
    text: "gap (s)", showarrow: false, font: { size: 11, color: colours.text } });
  for (let place = 0; place < drawn.length; place++) {
    const n = place ? place + 1 : "";
    layout[`xaxis${n}`].range = [0, right * 1.01];
    layout[`yaxis${n}`].range = [0, top * 1.08];
  }
  layout.uirevision = `${shown}`;
  plot("sawtooth", traces, layout, (point) => {
    if (point.data.run === undefined) return;
    openRun(point.data.run);
    chooseStallAt(point.data.stream, point.x);
  });
}

function openTrace(stream, xaxis, yaxis, floor, median) {
  return { ...openTooth(stream, floor), type: "scatter", mode: "lines+markers", xaxis, yaxis,
    line: { color: campaign.openColour, width: 2, dash: "6px,4px" },
    marker: { symbol: ["line-ew", "circle-open"], size: 9, color: campaign.openColour },
    run: median?.run, stream: median?.stream,
    hovertemplate: "silent at the end for %{y:.1f} s: no line ended it<extra></extra>" };
}

// Beside the chart, or below it where there is little width.
function addLegend(layout, count) {
  layout.showlegend = true;
  layout.legend = { itemclick: false, itemdoubleclick: false, font: { size: 12 } };
  if (!narrow() && !onPaper) return;
  const size = 20 * count + 12;
  layout.height += size;
  layout.margin.b += size;
  Object.assign(layout.legend, { yref: "container", y: 0, yanchor: "bottom", x: 0, maxheight: size + 20 });
}

// ---- distribution
function drawCurves() {
  const colours = theme(), chosen = Number($("curve-runs").value);
  const height = narrow() ? 340 : 430, traces = [];
  const positive = (values) => values.map((value) => (value > 0 ? value : null));
  const least = Math.min(50, ...shown.flatMap((variant) =>
    (campaign.variants[variant].curve ?? []).filter((value) => value > 0)));
  campaign.runs.forEach((run, index) => {
    if (run.variant !== chosen || !run.curve) return;
    traces.push({ type: "scatter", mode: "lines", x: campaign.grid, y: positive(run.curve),
      line: { color: look(chosen).colour, width: 1, dash: look(chosen).dash }, opacity: 0.55,
      name: literal(runName(index)),
      hovertemplate: `${literal(runName(index))}: %{y:.2f} % of the time in gaps of %{x:.2f} s or more<extra></extra>` });
  });
  for (const variant of shown) {
    const { curve, label } = campaign.variants[variant];
    if (!curve) continue;
    const { colour, dash, marker } = look(variant);
    traces.push({ type: "scatter", mode: "lines+markers", x: campaign.grid, y: positive(curve),
      line: { color: colour, width: variant === chosen ? 3.4 : 2, dash }, name: literal(fit(label, 190)),
      marker: { symbol: marker, size: 7, color: colour,
        opacity: campaign.grid.map((_, place) => (place % 15 === 7 ? 1 : 0)) },
      showlegend: true,
      hovertemplate: `${literal(label)}: %{y:.2f} % of the time in gaps of %{x:.2f} s or more<extra></extra>` });
  }
  const layout = baseLayout(colours, height);
  layout.margin = { l: 56, r: 10, t: 8, b: 46 };
  addLegend(layout, shown.length);
  layout.xaxis = { ...baseAxis(colours), type: "log", fixedrange: false, dtick: 1,
    title: { text: "length of the gap (s), logarithmic", font: { size: 12 } } };
  layout.yaxis = { ...baseAxis(colours), type: "log", fixedrange: false, dtick: 1,
    range: [Math.floor(Math.log10(least)), 2.05], ticksuffix: " %",
    title: { text: "share of the time, logarithmic", font: { size: 12 } } };
  for (const trace of traces) trace.showlegend ??= false;
  plot("curves", traces, layout);
}

// ---- the order in which the runs ran
function drawOrder() {
  const colours = theme();
  const metric = campaign.metrics.find(({ key }) => key === $("metric").value);
  const values = campaign.values[metric.key];
  const known = campaign.runs.some((run) => run.order !== null);
  const place = (index) => (known ? campaign.runs[index].order : index + 1);
  const top = Math.max(...values.filter((value) => value !== null), 0) || 1;
  const traces = [];
  const unit = metric.unit ? ` ${metric.unit}` : "";
  const hover = (index) => {
    const run = campaign.runs[index];
    const least = run.unfinished ? "unfinished, at least " : "";
    const figure = run.failed ? literal(run.state) : `${least}${values[index].toFixed(metric.digits)}${unit}`;
    const busy = run.busy === null ? "" : `<br>host busy with others: ${run.busy.toFixed(1)} %`;
    return `${literal(runName(index))}: ${figure}<br>${known ? "ran as number" : "number"} ${place(index)}${busy}`;
  };
  const groups = new Map([[-1, []], ...shown.map((variant) => [variant, []])]);
  campaign.runs.forEach((run, index) => {
    if (!run.counted || place(index) === null) return;
    if (!run.failed && values[index] === null) return;
    groups.get(shown.includes(run.variant) ? run.variant : -1).push(index);
  });
  const failing = [];
  for (const [variant, members] of groups) {
    if (!members.length) continue;
    const { colour, marker } = variant < 0
      ? { colour: colours.dim, marker: "circle-open" } : look(variant);
    const failed = members.map((index) => campaign.runs[index].failed);
    failing.push(...members.filter((index) => campaign.runs[index].failed));
    traces.push({ type: "scatter", mode: "markers", x: members.map(place),
      y: members.map((index, i) => (failed[i] ? top * 1.16 : values[index])),
      marker: { color: colour, size: failed.map((one) => (one ? 12 : variant < 0 ? 5 : 10)),
        symbol: members.map((index, i) => (failed[i] ? "x" : campaign.runs[index].unfinished ? "triangle-up" : marker)), opacity: 1, line: { width: 1, color: colours.ground } },
      name: variant < 0 ? "other variants" : literal(fit(campaign.variants[variant].label, 190)),
      runs: members, text: members.map(hover), hovertemplate: "%{text}<extra></extra>" });
  }
  const layout = baseLayout(colours, narrow() ? 330 : 360);
  layout.margin = { l: 56, r: 10, t: 22, b: 46 };
  addLegend(layout, traces.length);
  layout.xaxis = { ...baseAxis(colours), fixedrange: false, title: { font: { size: 12 },
    text: known ? "place among all runs of the campaign" : "run (their order is not known: by variant)" } };
  layout.yaxis = { ...baseAxis(colours), range: [0, top * (failing.length ? 1.24 : 1.1)],
    title: { text: literal(metric.unit ? `${metric.title} (${metric.unit})` : metric.title), font: { size: 12 } } };
  if (failing.length) {
    layout.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: top * 1.08, y1: top * 1.08,
      line: { color: colours.dim, width: 1, dash: "dot" } }];
    layout.margin.t = 36;
    failing.sort((a, b) => place(a) - place(b));
    layout.annotations = failing.slice(0, 24).map((index, nth) => ({ x: place(index), y: top * 1.16,
      yshift: 14 + 12 * (nth % 2), // neighbours' words do not touch
      showarrow: false, text: literal(campaign.runs[index].state),
      font: { size: 11, color: colours.text } }));
  }
  plot("order-chart", traces, layout, (point) => openRun(point.data.runs[point.pointNumber], true));
}

// ---- which variants are shown, if there are too many for one picture
function fillShown() {
  const count = campaign.variants.length;
  $("shown-words").textContent = count > campaign.most ? `${campaign.shownWords}.` : "";
  if (count > campaign.most) {
    const select = $("shown"), size = campaign.most - 1;
    select.append(make("option", "the extremes", { value: "" }));
    for (let first = 1; first < count; first += size) {
      const last = Math.min(first + size, count) - 1;
      const name = (variant) => campaign.variants[variant].label;
      select.append(make("option", `${name(first)} to ${name(last)}`, { value: first }));
    }
    $("shown-control").hidden = false;
    select.addEventListener("change", () => {
      const first = Number(select.value);
      shown = first === 0 ? campaign.shown
        : [0, ...Array.from({ length: Math.min(size, count - first) }, (_, i) => first + i)];
      $("shown-words").textContent = first ? "The baseline and the chosen ones." : `${campaign.shownWords}.`;
      fillCurveChoice();
      drawKeys();
      redrawAll();
    });
  }
  fillCurveChoice();
  $("curve-runs").addEventListener("change", drawCurves);
}

function fillCurveChoice() {
  $("curve-runs").replaceChildren(make("option", "none", { value: -1 }),
    ...shown.map((variant) => make("option", campaign.variants[variant].label, { value: variant })));
}

// A line in front of each variant's name, as it is drawn.
function drawKeys() {
  for (const key of document.querySelectorAll(".key")) {
    const variant = Number(key.dataset.variant);
    const { colour, css } = look(variant);
    key.style.borderTop = shown.includes(variant) ? `3px ${css} ${colour}` : "3px solid transparent";
  }
}

// ---- tables of many rows can be sorted by their headings
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const original = [...body.rows];
  heads.forEach((head, column) => {
    const button = make("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "none" }[head.ariaSort] ?? "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next !== "none") head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const text = (row) => row.cells[column].textContent.trim();
      const figure = (row) => parseFloat(text(row).replace(/^[≥>=<]+|,/g, ""));
      const compare = (a, b) => {
        const [left, right] = [figure(a), figure(b)];
        if (Number.isNaN(left) !== Number.isNaN(right)) return Number.isNaN(left) ? 1 : -1;
        return sign * (Number.isNaN(left) ? text(a).localeCompare(text(b)) : left - right);
      };
      body.append(...(next === "none" ? original : [...original].sort(compare)));
    });
  });
}

// ---- a table that is wider than the screen says so
function hintAtWidth(box) {
  const hint = make("p", "More columns to the right: scroll this table sideways", { class: "wider" });
  const look = () => { hint.hidden = box.scrollWidth <= box.clientWidth + 1; };
  look();
  box.before(hint);
  const observer = new ResizeObserver(look);
  observer.observe(box);
  observer.observe(box.querySelector("table"));
}

// ---- config differences
const FEW = 200;
function fillConfigs(everything = false) {
  if (!$("config-variant")) return;
  const variant = Number($("config-variant").value);
  const rows = campaign.configs.rows[variant] ?? [];
  const wanted = $("config-filter").value.trim().toLowerCase();
  const found = rows.filter((row) => row.some((cell) => cell.toLowerCase().includes(wanted)));
  const some = everything ? found : found.slice(0, FEW);
  $("config-head").replaceChildren(make("bdi", campaign.variants[variant].label));
  $("configs").tBodies[0].replaceChildren(...some.map((cells) => {
    const row = make("tr");
    row.append(make("th", cells[0], { scope: "row" }), make("td", cells[1]), make("td", cells[2]));
    return row;
  }));
  $("configs").hidden = !rows.length;
  $("config-words").textContent = campaign.configs.words[variant]
    + (wanted ? ` ${found.length} of them hold the text.` : "");
  $("config-more").hidden = some.length === found.length;
  $("config-more").textContent = `Show all ${found.length}`;
}
