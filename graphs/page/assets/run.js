// SPDX-License-Identifier: GPL-2.0-or-later
// One run: its streams and counters on one time axis, its stalls as list and card.

const MOVED = ["swap in", "swap out", "page in", "page out"];
const FLOOR = 0.005; // s: where a logarithmic tooth stands on
let current = 0; // the chosen run
let chosen = null; // the chosen stall's place in the run's list
let rows = []; // stream or panel of each row of the chart

function openRun(index, scroll = false) {
  if (index !== current || !rows.length) {
    current = index;
    chosen = null;
    $("run-choice").value = index;
    fillRun();
    showCard();
    drawRun();
  }
  if (scroll) $("run").scrollIntoView();
}

function fillRunChoice() {
  const groups = campaign.variants.map(({ label }) => make("optgroup", undefined, { label }));
  campaign.runs.forEach((run, index) => {
    const state = run.state === "completed" ? "" : ` (${run.state})`;
    groups[run.variant].append(make("option", `${runName(index)}${state}`, { value: index }));
  });
  $("run-choice").append(...groups);
  const order = [...$("run-choice").options].map((option) => Number(option.value));
  const step = (by) => openRun(order[(order.indexOf(current) + by + order.length) % order.length]);
  $("run-choice").addEventListener("change", () => openRun(Number($("run-choice").value)));
  $("run-before").addEventListener("click", () => step(-1));
  $("run-after").addEventListener("click", () => step(1));
  $("gap-scale").addEventListener("change", drawRun);
  $("stall-order").addEventListener("change", fillStalls);
}

function fillRun() {
  const run = campaign.runs[current], part = runPart(current);
  const value = campaign.values.stalled[current];
  const missing = part.panels.filter((panel) => !isThere(panel));
  const { addedUp, stalledDigits } = campaign.words;
  $("run-words").textContent = `${runName(current)}: ${run.state}${run.felt}`
    + (value === null ? "" : `; ${value.toFixed(stalledDigits)} s of stalls${addedUp}`)
    + (part.streams.length ? "." : "; no program printed a line.")
    + (missing.length ? ` Not available: ${missing.map(({ title }) => title).join(", ")}.` : "");
  fillStalls();
}

const isThere = ({ curves }) => curves.some(({ t }) => t !== undefined);

// ---- the chart
function drawRun() {
  const colours = theme(), part = runPart(current), log = $("gap-scale").value === "log";
  const colour = look(campaign.runs[current].variant).colour;
  rows = [...part.streams.map((stream, index) => ({ stream, index })),
    ...part.panels.filter(isThere).map((panel) => ({ panel }))];
  const each = narrow() ? 76 : 82, top = 4, bottom = 40;
  const layout = baseLayout(colours, Math.max(rows.length, 1) * each + top + bottom);
  layout.margin = { l: narrow() ? 38 : 48, r: 8, t: top, b: bottom };
  layout.xaxis = { ...baseAxis(colours), fixedrange: false, range: [0, part.until / 1000 * 1.005 || 1],
    anchor: `y${rows.length > 1 ? rows.length : ""}`, showspikes: true, spikemode: "across",
    spikethickness: 1, spikecolor: colours.dim, spikedash: "dot", spikesnap: "cursor",
    title: { text: TIME, font: { size: 11 } } };
  layout.annotations = [];
  layout.uirevision = current;
  const traces = [];
  const highest = (streams) => Math.max(0.1, ...streams.map(({ worst }) => worst / 1000));
  const ofSubjects = highest(part.streams.filter(({ subject }) => subject));
  rows.forEach((row, place) => {
    const n = place ? place + 1 : "", yaxis = `y${n}`, size = 1 / rows.length;
    const domain = [1 - (place + 1) * size + 0.02 * size, 1 - place * size - Math.min(0.22, 18 / each) * size];
    const axis = { ...baseAxis(colours), domain, anchor: "x", nticks: 4, tickfont: { size: 10, color: colours.text } };
    let words;
    if (row.stream) {
      const { stream } = row, floor = log ? FLOOR : 0;
      const max = stream.subject ? ofSubjects : highest([stream]);
      if (log) Object.assign(axis, { type: "log", range: [Math.log10(FLOOR), Math.log10(max * 1.4)], dtick: 1 });
      else axis.range = [0, max * 1.1];
      traces.push({ ...teeth(stream, floor), type: "scatter", mode: "lines", xaxis: "x", yaxis,
        line: { color: colour, width: 1.1 }, stream: row.index,
        hovertemplate: "%{x:.2f} s: gap %{y:.3f} s<extra></extra>" });
      if (stream.open >= 500) traces.push({ ...openTrace(stream, "x", yaxis, floor), stream: row.index });
      traces.push(stallMarks(part, row.index, yaxis, colours));
      words = `<b>${literal(stream.name)}</b>, gap (s): worst ${seconds(stream.worst)}`
        + (stream.ended ? "" : ", its end was not seen");
    } else {
      const made = counterTraces(row.panel, part.times, yaxis, colours);
      traces.push(...made.traces);
      axis.range = [0, made.top * 1.1 || 1];
      words = made.words;
    }
    layout[`yaxis${n}`] = axis;
    layout.annotations.push({ xref: "paper", yref: `${yaxis} domain`, x: 0, y: 1, xanchor: "left",
      yanchor: "bottom", yshift: -2, showarrow: false, text: words, font: { size: 11, color: colours.text } });
  });
  layout.shapes = bands(part, colours);
  plot("run-chart", traces, layout, (point) => {
    if (point.data.stalls) chooseStall(point.data.stalls[point.pointNumber]);
    else if (point.data.stream !== undefined) chooseStallAt(point.data.stream, point.x);
  });
}

function stallMarks(part, index, yaxis, colours) {
  const places = part.stalls.flatMap((stall, place) => (stall.stream === index ? [place] : []));
  const ends = places.map((place) => part.stalls[place]);
  return { type: "scatter", mode: "markers", xaxis: "x", yaxis, stalls: places,
    x: ends.map(({ begin, length }) => (begin + length) / 1000),
    y: ends.map(({ length }) => length / 1000),
    marker: { symbol: "diamond", size: 8, color: campaign.colours[4], line: { width: 1, color: colours.text } },
    text: ends.map(({ begin, length }) => `stall of ${seconds(length)}, from ${seconds(begin)}`),
    hovertemplate: "%{text}: click for more<extra></extra>" };
}

function counterTraces(panel, times, yaxis, colours) {
  const traces = [], named = [], missing = [];
  let top = 0;
  panel.curves.forEach((curve, index) => {
    if (curve.t === undefined) { missing.push(curve.name); return; }
    const x = times[curve.t], isRate = x.length > curve.y.length; // between two stamps
    const y = curve.y.map((value) => (value === null ? null : value * panel.scale));
    if (isRate) y.push(y.at(-1));
    for (const value of y) top = Math.max(top, value ?? 0);
    const colour = dark.matches && !onPaper
      ? ON_DARK[campaign.colours[index]] ?? campaign.colours[index] : campaign.colours[index];
    traces.push({ type: "scatter", mode: "lines", xaxis: "x", yaxis, x, y,
      line: { color: colour, width: index ? 1.4 : 1, dash: index ? "4px,2px" : "solid",
        shape: isRate ? "hv" : "linear" },
      fill: index ? "none" : "tozeroy", fillcolor: `${colour}55`,
      hovertemplate: `${literal(curve.name)}: %{y:,.1f} ${literal(panel.unit)} at %{x:.2f} s<extra></extra>` });
    named.push(`<span style="color:${colour}">${index ? "╌╌" : "■"}</span> ${literal(curve.name)}`);
  });
  const words = `<b>${literal(panel.title)}</b> (${literal(panel.unit)}): ${named.join("  ")}`
    + (missing.length ? ` ${literal(`${missing.join(", ")}: not available`)}` : "");
  return { traces, top, words };
}

// Grey where a subject stood still, and the chosen stall.
function bands(part, colours) {
  const band = (begin, end, fillcolor) => ({ type: "rect", xref: "x", yref: "paper", layer: "below",
    x0: begin / 1000, x1: end / 1000, y0: 0, y1: 1, fillcolor, line: { width: 0 } });
  const found = part.freezes.map(([begin, end]) => band(begin, end, colours.shade));
  const stall = part.stalls[chosen];
  if (stall) found.push(band(stall.begin, stall.begin + stall.length, colours.chosen));
  return found;
}

// ---- zoom
function zoom(kind) {
  const element = $("run-chart"), whole = runPart(current).until / 1000 * 1.005 || 1;
  const [from, to] = element.layout.xaxis.range, size = to - from, middle = (from + to) / 2;
  const next = {
    in: [middle - size / 4, middle + size / 4], out: [middle - size, middle + size],
    left: [from - size / 2, to - size / 2], right: [from + size / 2, to + size / 2], reset: [0, whole],
  }[kind];
  show(next[0], next[1]);
}

function show(from, to) {
  const whole = runPart(current).until / 1000 * 1.005 || 1;
  const size = Math.min(Math.max(to - from, 0.05), whole);
  const begin = Math.min(Math.max(from, 0), whole - size);
  Plotly.relayout("run-chart", { "xaxis.range": [begin, begin + size] });
}

const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "reset" };

// ---- stalls
function chooseStallAt(stream, x) {
  const { stalls } = runPart(current), ms = 1000 * x;
  const place = stalls.findIndex((stall) =>
    stall.stream === stream && ms >= stall.begin - 1 && ms <= stall.begin + stall.length + 1);
  if (place >= 0) chooseStall(place);
}

function chooseStall(place) {
  chosen = place;
  showCard();
  for (const row of $("stalls").tBodies[0].rows) {
    const isChosen = Number(row.dataset.stall) === place;
    row.setAttribute("aria-selected", isChosen);
    row.querySelector("button").setAttribute("aria-pressed", isChosen);
    if (isChosen) { // in its own box only: the page stays where the reader is
      const box = $("stall-box"), at = row.offsetTop;
      if (at < box.scrollTop + 30 || at > box.scrollTop + box.clientHeight - 30) box.scrollTop = at - 60;
    }
  }
  if (rows.length) {
    Plotly.relayout("run-chart", { shapes: bands(runPart(current), theme()) });
  }
}

function fillStalls() {
  const { stalls, streams } = runPart(current), places = stalls.map((_, place) => place);
  if ($("stall-order").value === "length") places.sort((a, b) => stalls[b].length - stalls[a].length);
  $("stalls").tBodies[0].replaceChildren(...places.map((place) => {
    const stall = stalls[place], row = make("tr", undefined, { "data-stall": place, "aria-selected": place === chosen });
    const name = streams[stall.stream].name;
    const button = make("button", seconds(stall.begin), { type: "button", class: "link",
      "aria-pressed": place === chosen,
      "aria-label": `Stall of ${name} from ${seconds(stall.begin)}, lasting ${seconds(stall.length)}` });
    const cell = make("td");
    cell.append(button);
    const stream = make("td");
    stream.append(make("bdi", name));
    row.append(cell, make("td", `${seconds(stall.length)}${stall.open ? "+" : ""}`), stream);
    return row;
  }));
  const open = stalls.some((stall) => stall.open) ? " +: no line ended it." : "";
  $("stalls-caption").textContent = stalls.length
    ? `${stalls.length} silence${stalls.length > 1 ? "s" : ""}: of ${campaign.words.thresholds}.${open}`
    : "No stall in this run.";
}

function showCard() {
  const card = $("card"), part = runPart(current), stall = part.stalls[chosen];
  if (!stall) {
    card.classList.add("empty");
    card.replaceChildren(make("p", "No stall chosen: click a mark in the chart, or choose one from the list."));
    return;
  }
  card.classList.remove("empty");
  const name = part.streams[stall.stream].name, end = stall.begin + stall.length;
  const paragraph = (text) => make("p", text);
  const title = make("h3");
  title.append(make("bdi", name), ` silent for ${seconds(stall.length, 3)}`);
  const parts = [title,
    paragraph(`From ${seconds(stall.begin, 3)} to ${seconds(end, 3)} after the start of the workload`
      + (stall.open ? (part.streams[stall.stream].ended ? "; still silent when it ended." : "; no line ended it, and its end was not seen.") : "."))];
  if (part.bootClock !== null) {
    const clock = (ms) => (part.bootClock + ms / 1000).toFixed(1);
    parts.push(paragraph(`In the kernel's log: about [${clock(stall.begin)}] to [${clock(end)}].`));
  }
  if (stall.why) parts.push(paragraph(`Waited for: ${stall.why}.`));
  const others = part.stalls.filter((other) => other.stream !== stall.stream
    && other.begin < end && other.begin + other.length > stall.begin);
  const also = make("p", others.length ? "Silent meanwhile too: " : "No other stream was in a stall meanwhile.");
  others.slice(0, 8).forEach((other, place) => also.append(place ? "; " : "",
    make("bdi", part.streams[other.stream].name),
    ` (${seconds(other.begin)} to ${seconds(other.begin + other.length)})`));
  if (others.length > 8) also.append(`; and ${others.length - 8} more.`);
  parts.push(also, counterTable(stall, part), lineWords(stall, part));
  const controls = make("p", undefined, { class: "controls" });
  const button = (text, act) => {
    const made = make("button", text, { type: "button" });
    made.addEventListener("click", act);
    controls.append(made);
  };
  button("Zoom to it", () => show((stall.begin - 0.25 * stall.length) / 1000, (end + 0.25 * stall.length) / 1000));
  const near = (by) => (chosen + by + part.stalls.length) % part.stalls.length;
  // The card is made anew: the focus goes to the button of the same name in the next one.
  const go = (by) => { const label = by < 0 ? "Earlier stall" : "Later stall"; chooseStall(near(by));
    [...$("card").querySelectorAll("button")].find((one) => one.textContent === label).focus(); };
  button("Earlier stall", () => go(-1));
  button("Later stall", () => go(1));
  parts.push(controls);
  card.replaceChildren(...parts);
}

function counterTable(stall, part) {
  const table = make("table"), body = make("tbody");
  table.append(make("caption", "Meanwhile, and on the average of the whole run"), body);
  const line = (name, now, usual) => {
    const row = make("tr");
    row.append(make("th", name, { scope: "row" }), make("td", now ?? "not available"), make("td", usual ?? "-"));
    body.append(row);
  };
  const rate = (value) => (value === null ? null : `${value.toFixed(2)} MiB/s`);
  MOVED.forEach((name, place) => {
    const moved = stall.counters[place];
    line(name, moved && `${moved[0].toFixed(1)} MiB, ${rate(moved[1])}`, rate(part.averages[place]));
  });
  const pages = (value) => (value === null ? null : `${value.toLocaleString("en")} pages`);
  line("nr_writeback, peak", pages(stall.counters[4]), pages(part.averages[4]));
  const percent = (value) => (value === null ? null : `${value.toFixed(1)} %`);
  line("memory pressure, some", percent(stall.counters[5]), percent(part.averages[5]));
  line("memory pressure, all", percent(stall.counters[6]), percent(part.averages[6]));
  return table;
}

function lineWords(stall, part) {
  const words = make("p"), name = part.streams[stall.stream].name;
  const quote = (label, text) => words.append(label, make("q", text));
  if (stall.before === undefined) {
    words.append(stall.open ? `After line ${stall.line - 1} of latency-` : `Before line ${stall.line} of latency-`,
      make("bdi", name), ".log (this page has no lines' texts).");
    return words;
  }
  if (stall.before === null) words.append("No line before it. ");
  else { quote("The line before: ", stall.before); words.append(". "); }
  if (stall.after === null) words.append("No line ended it.");
  else quote("The line that ended it: ", stall.after);
  return words;
}
