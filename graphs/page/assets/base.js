// SPDX-License-Identifier: GPL-2.0-or-later
// What the page's scripts share: the data, the theme, elements, and how a chart is drawn.
"use strict";

const FONT = '"DejaVu Sans", system-ui, sans-serif';

const $ = (id) => document.getElementById(id);
const campaign = JSON.parse($("campaign-data").textContent);
const runParts = new Map();

// A run's part is read when the run is first shown.
function runPart(index) {
  if (!runParts.has(index)) {
    const part = JSON.parse($(`run-data-${index}`).textContent), columns = Object.entries(part.stalls);
    part.stalls = part.stalls.stream.map((_, place) =>
      Object.fromEntries(columns.map(([key, values]) => [key, values[place]])));
    part.times = part.times.map(stamps);
    runParts.set(index, part);
  }
  return runParts.get(index);
}

// Elements take texts only: what a stranger wrote is never parsed as HTML.
function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// plotly reads tags, entities and %{...} in its texts: here every such character stands for itself.
function literal(text) {
  return text.replace(/[&<>{}$%"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

// The text, cut so that it takes at most so many pixels in a chart.
const pencil = document.createElement("canvas").getContext("2d");
function fit(text, pixels, bold = false) {
  pencil.font = `${bold ? "bold " : ""}11px ${FONT}`;
  let short = text;
  while (short.length > 4 && pencil.measureText(short).width > pixels) short = short.slice(0, -2);
  return short === text ? text : `${short.slice(0, -1)}…`;
}

const seconds = (ms, digits = 1) => `${(ms / 1000).toFixed(digits)} s`;
const runName = (index) => {
  const run = campaign.runs[index];
  return `${campaign.variants[run.variant].label}, run ${run.number}`;
};

// Colours: light on paper, else as the reader's system asks.
const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");
let onPaper = print.matches;
const narrow = () => !onPaper && window.innerWidth < 600;
const PAPER = { text: "#1b1f23", dim: "#57606a", grid: "#e4e6e8", shade: "rgba(110,118,129,0.2)",
  chosen: "rgba(230,159,0,0.32)", ground: "#ffffff" };

function theme() {
  if (onPaper) return PAPER;
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    Object.keys(PAPER).map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Which variants the charts show, and each one's place among them: its colour, dash and marker.
let shown = campaign.variants.length > campaign.most
  ? campaign.shown : campaign.variants.map((_, index) => index);
const DASHES = ["solid", "14px,5px", "4px,4px", "2px,6px"];
const ON_DARK = { "#000000": "#e8e8e8", "#0072B2": "#3a93d6" }; // too dark to be seen there
const MARKERS = ["circle", "square", "diamond", "triangle-up", "pentagon", "star", "hexagon2"];

function look(variant) {
  const place = Math.max(0, shown.indexOf(variant));
  let colour = campaign.colours[place % campaign.colours.length];
  if (dark.matches && !onPaper) colour = ON_DARK[colour] ?? colour;
  const turn = Math.floor(place / campaign.colours.length) % 4;
  return { colour, dash: DASHES[turn], css: ["solid", "dashed", "dotted", "double"][turn],
    marker: MARKERS[place % MARKERS.length] + (turn % 2 ? "-open" : "") };
}

// A stepped table of differences, in ms, as seconds.
function stamps(deltas) {
  let now = 0;
  return deltas.map((step) => (now += step) / 1000);
}

// Elapsed and gap of each line of a stream that the page has, in seconds.
function lines(stream) {
  const at = stamps(stream.t);
  const gap = stream.gaps
    ? stream.gaps.map((ms) => ms / 1000)
    : stream.t.map((step, line) => (step - (line ? 0 : stream.begin)) / 1000);
  return { at, gap };
}

// A tooth rises for as long as its gap lasted, to the gap's height, and falls at once. A stream that
// prints on a clock has no teeth but a level, from which long gaps stand out.
function teeth(stream, floor = 0) {
  const { at, gap } = lines(stream);
  if (stream.paced) return { x: at, y: gap.map((one) => Math.max(one, floor)) };
  const x = [], y = [];
  let before = null;
  for (let line = 0; line < at.length; line++) {
    const begin = Math.round(1000 * (at[line] - gap[line])) / 1000;
    if (before === null || begin > before) {
      if (before !== null) { x.push(before); y.push(floor); }
      x.push(begin); y.push(floor);
    } else { x.push(before); y.push(floor); }
    x.push(at[line]); y.push(Math.max(gap[line], floor));
    before = at[line];
  }
  if (before !== null) { x.push(before); y.push(floor); }
  return { x, y };
}

// The silence at the end, which no line ended.
function openTooth(stream, floor = 0) {
  const last = stream.last / 1000, open = stream.open / 1000;
  return { x: [last, last + open], y: [floor, Math.max(open, floor)] };
}

const baseAxis = (colours) => ({
  type: "linear", fixedrange: true, gridcolor: colours.grid, zeroline: false,
  linecolor: colours.dim, tickcolor: colours.dim, tickfont: { size: 11, color: colours.text },
});

function baseLayout(colours, height) {
  return {
    height, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: FONT, size: 12, color: colours.text },
    showlegend: false, hovermode: "closest", margin: { l: 46, r: 10, t: 8, b: 40 },
    hoverlabel: { bgcolor: colours.ground, bordercolor: colours.dim,
      font: { color: colours.text, size: 12 } },
    ...(onPaper ? { width: 690, autosize: false } : {}),
  };
}

// Fingers scroll the page over a chart; they zoom with the buttons.
const dragZooms = !matchMedia("(pointer: coarse)").matches;
const charts = new Map(); // element id -> function that draws it

function plot(id, traces, layout, onClick) {
  const element = $(id);
  const isNew = !element.classList.contains("js-plotly-plot");
  layout.dragmode = dragZooms ? layout.dragmode ?? "zoom" : false;
  Plotly.react(element, traces, layout,
    { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false });
  if (isNew && onClick) element.on("plotly_click", (event) => onClick(event.points[0]));
}

// A chart is drawn when it comes near to the screen, and again when the theme or paper changes.
const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) { watcher.unobserve(target); charts.get(target.id).draw(); }
  }
}, { rootMargin: "300px" });

function chart(id, draw) {
  let drawn = false;
  charts.set(id, { draw: () => { drawn = true; draw(); }, redraw: () => { if (drawn) draw(); } });
  watcher.observe($(id));
}

function redrawAll(undrawnToo = false) {
  for (const { draw, redraw } of charts.values()) (undrawnToo ? draw : redraw)();
}
