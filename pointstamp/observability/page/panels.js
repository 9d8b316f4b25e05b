// The panels beside the graph: a timeline on a canvas, series and bars by uPlot, tables.
"use strict";

function amount(n) {
  if (n === null || n === undefined) return "–";
  for (const [least, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(n) >= least) return `${(n / (least === 1e4 ? 1e3 : least)).toFixed(1)}${name}`;
  }
  return Number.isInteger(n) ? String(n) : n.toFixed(n < 10 ? 1 : 0);
}

function bytes(n) {
  if (n === null || n === undefined) return "–";
  for (const [least, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (n >= least) return `${(n / least).toFixed(1)} ${name}`;
  }
  return `${n} B`;
}

function duration(s) {
  if (s === null || s === undefined) return "–";
  if (s >= 1) return `${s.toFixed(2)} s`;
  if (s >= 1e-3) return `${(s * 1e3).toFixed(2)} ms`;
  return `${(s * 1e6).toFixed(1)} µs`;
}

// As short as an axis needs it.
function roughly(s) {
  const [factor, name] = s >= 1 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${Number((s * factor).toPrecision(2))} ${name}`;
}

function percent(part) { return `${(100 * part).toFixed(1)} %`; }

function element(name, text, parent, cls) {
  const made = document.createElement(name);
  if (text !== "") made.textContent = text;
  if (cls) made.className = cls;
  if (parent) parent.appendChild(made);
  return made;
}

// A table of texts; the headings that end with "|" are of columns of words.
function table(parent, headings, rows, otherwise) {
  parent.replaceChildren();
  if (!rows.length) { element("p", otherwise, parent, "hint"); return; }
  const made = element("table", "", parent);
  const head = element("tr", "", element("thead", "", made));
  const isText = headings.map((each) => each.endsWith("|"));
  headings.forEach((each, i) => element("th", each.replace("|", ""), head, isText[i] ? "text" : ""));
  const body = element("tbody", "", made);
  for (const row of rows) {
    const line = element("tr", "", body);
    row.forEach((each, i) => {
      const cell = element("td", each instanceof Node ? "" : String(each), line,
        isText[i] ? "text" : "");
      if (each instanceof Node) cell.appendChild(each);
    });
  }
}

function bar(part) {
  const made = document.createElement("span");
  made.className = "bar";
  made.style.width = `${Math.round(90 * Math.max(0, Math.min(1, part)))}px`;
  return made;
}

// A uPlot that is made once and given new data.
class Plot {
  constructor(parent, make) { this.parent = parent; this.make = make; this.plot = null; this.key = ""; }
  show(data, key = "") {
    const width = Math.max(280, this.parent.clientWidth - 4);
    if (!this.plot || key !== this.key || width !== this.plot.width) {
      if (this.plot) this.plot.destroy();
      this.plot = new uPlot({ width, height: 170, ...this.make() }, data, this.parent);
      this.key = key;
    } else this.plot.setData(data);
  }
  hide() { if (this.plot) { this.plot.destroy(); this.plot = null; } }
}

// A colour of the style sheet, of which there are two sets: a canvas has to be given it.
function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const isDark = window.matchMedia("(prefers-color-scheme: dark)");
const axis = (of) => ({ stroke: () => ink("soft"), grid: { stroke: () => ink("grid"), width: 1 },
  ticks: { stroke: () => ink("grid"), width: 1 }, ...of });
const axes = (x, y) => [axis({ size: 32, ...x }), axis({ size: 56, ...y })];
const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#9c755f",
  "#edc948", "#2c5f8a", "#d37295", "#6a9f58", "#a0cbe8", "#ff9d7a", "#499894", "#8e5ea2"];
const FIXED = ["parked", "program", "progress"];

class Timeline {
  constructor(canvas, legend, tipOf) {
    this.canvas = canvas;
    this.legend = legend;
    this.nameOf = tipOf;
    this.range = null;
    this.colours = new Map();
    canvas.addEventListener("mousemove", (event) => this.point(event));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (!this.data) return;
      const [from, to] = this.shown();
      const at = from + (to - from) * this.part(event);
      const factor = Math.exp(event.deltaY / 500);
      this.range = [at - (at - from) * factor, at + (to - at) * factor];
      this.draw();
    }, { passive: false });
  }

  part(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.max(0, (event.clientX - box.left - 70) / (box.width - 70));
  }

  colour(what) {
    if (FIXED.includes(what)) return ink(what);
    if (!this.colours.has(what)) this.colours.set(what, PALETTE[this.colours.size % PALETTE.length]);
    return this.colours.get(what);
  }

  show(timeline, critical) {
    this.data = timeline;
    this.critical = critical;
    // Of a running program another epoch may be the slowest now.
    if (this.range && this.range === this.critically) this.zoomToCritical();
    else this.draw();
  }

  zoomToCritical() {
    this.range = null;
    if (this.critical) {
      const { from, to } = this.critical, margin = (to - from) * 0.05;
      this.range = [from - margin, to + margin];
    }
    this.critically = this.range;
    this.draw();
  }

  shown() { return this.range || [this.data.from, this.data.to]; }

  draw() {
    const { rows } = this.data, height = 26 * rows.length + 26;
    const width = this.canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const to2d = this.canvas.getContext("2d");
    to2d.scale(ratio, ratio);
    to2d.font = "11px system-ui, DejaVu Sans, sans-serif";
    const [from, to] = this.shown();
    const x = (at) => 70 + (width - 70) * (at - from) / Math.max(to - from, 1e-12);
    const seen = new Map();
    rows.forEach((row, i) => {
      const y = 26 * i + 2;
      to2d.fillStyle = ink("ink");
      to2d.fillText(`worker ${row.worker}`, 2, y + 15);
      for (const [began, ended, what] of row.segments) {
        if (ended < from || began > to) continue;
        seen.set(what, (seen.get(what) || 0) + ended - began);
        to2d.fillStyle = this.colour(what);
        const left = Math.max(70, x(began));
        to2d.fillRect(left, y, Math.max(0.6, Math.min(width, x(ended)) - left), 20);
      }
    });
    if (this.critical) this.drawCritical(to2d, rows, x, width);
    to2d.fillStyle = ink("soft");
    const y = 26 * rows.length + 18;
    const n = Math.max(1, Math.min(6, Math.floor((width - 70) / 80))); // so that no two overlap
    for (let i = 0; i <= n; i++) {
      const at = from + (to - from) * i / n;
      const ago = Math.max(0, this.data.to - at);
      const said = !this.data.is_sampled ? duration(at) : ago < 1e-3 ? "now" : `−${duration(ago)}`;
      to2d.textAlign = i === n ? "right" : i === 0 ? "left" : "center";
      to2d.fillText(said, x(at), y);
    }
    to2d.textAlign = "left";
    this.legend.replaceChildren();
    const longest = [...seen].sort((a, b) => b[1] - a[1]).slice(0, 14);
    for (const [what] of longest) {
      const entry = element("span", "", this.legend);
      element("i", "", entry).style.background = this.colour(what);
      entry.append(this.nameOf(what));
    }
  }

  drawCritical(to2d, rows, x, width) {
    const rowOf = new Map(rows.map((row, i) => [row.worker, i]));
    let last = null;
    to2d.strokeStyle = ink("critical");
    to2d.lineWidth = 1.5;
    for (const part of this.critical.parts) {
      const i = rowOf.get(part.worker);
      if (i === undefined) continue;
      const y = 26 * i + 2, left = Math.max(70, x(part.from)), right = Math.min(width, x(part.to));
      if (right < 70 || left > width) continue;
      if (part.kind === "operator") to2d.strokeRect(left, y, Math.max(1, right - left), 20);
      else {
        to2d.beginPath();
        to2d.moveTo(left, y + 10);
        to2d.lineTo(right, y + 10);
        to2d.stroke();
      }
      if (last && last[1] !== y) {
        to2d.beginPath();
        to2d.moveTo(last[0], last[1] + 10);
        to2d.lineTo(left, y + 10);
        to2d.stroke();
      }
      last = [right, y];
    }
  }

  point(event) {
    if (!this.data) return;
    const [from, to] = this.shown();
    const at = from + (to - from) * this.part(event);
    const row = this.data.rows[Math.floor(event.offsetY / 26)];
    const found = row && row.segments.find(([began, ended]) => began <= at && at <= ended);
    this.canvas.title = found
      ? `worker ${row.worker}: ${this.nameOf(found[2])}, ${duration(found[1] - found[0])}` : "";
  }
}

class Panels {
  constructor(nameOf) {
    const by = (id) => document.getElementById(id);
    this.by = by;
    this.nameOf = nameOf;
    this.timeline = new Timeline(by("timeline"), by("legend"), nameOf);
    this.series = new Plot(by("series"), () => ({
      scales: { x: { time: false }, records: {}, epochs: {} },
      series: [{ label: "at", value: (u, v) => duration(v) }, { label: "records/s", scale: "records", stroke: () => ink("blue"), width: 1.5, value: (u, v) => amount(v) },
        { label: "epochs/s", scale: "epochs", stroke: () => ink("back"), width: 1.5, value: (u, v) => amount(v) }],
      axes: [axis({ size: 32, values: (u, ticks) => ticks.map((each) => `${Math.round(each * 1e3) / 1e3} s`) }),
        axis({ scale: "records", size: 56, values: (u, ticks) => ticks.map(amount) }),
        axis({ scale: "epochs", side: 1, size: 56, grid: { show: false }, values: (u, ticks) => ticks.map(amount) })],
    }));
    this.latencies = new Plot(by("latencies"), () => ({
      scales: { x: { time: false, range: (u, low, high) => [low - 0.6, high + 0.6] },
        y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)] } },
      legend: { show: false }, cursor: { show: false },
      series: [{}, { label: "epochs", stroke: () => ink("blue"), fill: () => ink("bars"), paths: uPlot.paths.bars({ size: [0.9] }), points: { show: false } }],
      axes: axes({ values: (u, ticks) => ticks.map((each) => this.edgeAt(each)) },
        { values: (u, ticks) => ticks.map(amount) }),
    }));
    this.ranges = new Plot(by("ranges"), () => ({
      scales: { x: { time: false, range: (u, low, high) => [low - 0.6, high + 0.6] },
        y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)] } },
      legend: { show: false }, cursor: { show: false },
      series: [{}, { label: "rows", stroke: () => ink("blue"), fill: () => ink("bars"), paths: uPlot.paths.bars({ size: [0.9] }), points: { show: false } }],
      axes: axes({ label: "rows of the snapshot, by key range", labelSize: 16, size: 44 }, { values: (u, ticks) => ticks.map(amount) }),
    }));
    by("zoom-all").addEventListener("click", () => { this.timeline.range = null; this.timeline.draw(); });
    by("zoom-critical").addEventListener("click", () => this.timeline.zoomToCritical());
  }

  edgeAt(i) {
    const edges = this.view.latencies.edges;
    return Number.isInteger(i) && edges[i] !== undefined ? roughly(edges[i]) : "";
  }

  show(view) {
    this.view = view;
    this.timeline.show(view.timeline, view.critical);
    this.by("timeline-note").textContent = view.timeline.is_sampled
      ? `the last minute, sampled each ${view.sampled_every * 1e3} ms` : "";
    this.showCritical(view);
    this.showLatencies(view.latencies);
    const first = view.series.t.length ? view.series.t[0] : 0;
    this.series.show([view.series.t.map((each) => each - (view.mode === "live" ? first : 0)),
      view.series.records, view.series.epochs]);
    this.showWorkers(view);
    this.showCheckpoints(view);
    this.showLoops(view);
    table(this.by("arrangements"), ["columns|", "key|", "updates", "bytes", "batches", "apart", "merging", "since", "upper"],
      (view.arrangements || []).map((each) => [each.columns, each.key.join(", "), amount(each.updates),
        bytes(each.bytes), each.batches, each.apart, each.merging, each.since.join(" "), each.upper.join(" ")]),
      view.arrangements === null ? "A log has none of these figures." : "No collection is arranged.");
  }

  showCritical(view) {
    const critical = view.critical, parent = this.by("critical");
    this.by("zoom-critical").hidden = !critical;
    if (!critical) {
      parent.replaceChildren();
      element("p", view.critical_note, parent, "hint");
      return;
    }
    table(parent, ["time", "share", "", "parts", "kind|", "what|"],
      critical.sums.slice(0, 8).map((each) => [duration(each.seconds), percent(each.seconds / critical.latency),
        bar(each.seconds / critical.latency), each.n, each.kind, each.name]), "");
    const said = document.createElement("p");
    said.className = "hint";
    said.textContent = `Critical path of the slowest epoch, ${critical.epoch} of ${critical.dataflow}: ` +
      `${duration(critical.latency)}; outlined in red above. ${critical.note || ""}`;
    parent.prepend(said);
  }

  showLatencies(found) {
    const numbers = this.by("latency-numbers");
    numbers.replaceChildren();
    for (const [name, value] of [["p50", duration(found.p50)], ["p99", duration(found.p99)],
      ["most", duration(found.most)], ["epochs", amount(found.n)], ["epochs/s", amount(found.rate)]]) {
      const each = element("span", `${value} `, numbers, "big");
      each.dataset.figure = name;
      element("small", name, each);
    }
    this.by("latency-note").textContent = found.note;
    if (found.n) this.latencies.show([found.counts.map((_, i) => i), found.counts], String(found.counts.length));
    else this.latencies.hide();
  }

  showWorkers(view) {
    const most = Math.max(1, ...view.workers.map((each) => each.taken));
    table(this.by("workers"), ["worker", "records taken", "", "per s", "operators", "progress", "program", "parked", "memory", "peak", "process", "is|"],
      view.workers.map((each) => [each.worker, amount(each.taken), bar(each.taken / most), amount(each.taken_rate),
        percent(each.operators), percent(each.progress), percent(each.program), percent(each.parked),
        bytes(each.memory), bytes(each.peak), each.process ?? "–", short(each.doing, 26)]), "No worker.");
    table(this.by("exchanges"), ["skew", ...view.workers.map((each) => `worker ${each.worker}`), "operator|", "pact|"],
      view.exchanges.slice(0, 30).map((each) => [each.skew === null ? "–" : each.skew.toFixed(2),
        ...each.taken.map(amount), each.name, each.pact]),
      "Nothing was exchanged between workers. Each worker has the keys of one range of hashes.");
  }

  showCheckpoints(view) {
    const found = view.checkpoints || [];
    table(this.by("checkpoints"), ["epoch", "age", "written", "in all", "took", "parts"],
      found.map((each) => [each.epoch, duration(each.age), bytes(each.bytes), bytes(each.all_bytes),
        duration(each.duration), `${each.parts} of ${each.of}`]),
      view.checkpoints === null ? "A log has none of these figures." : "No snapshot was asked for yet.");
    const done = found.find((each) => Object.keys(each.rows).length);
    if (done) {
      const bins = Object.keys(done.rows).map(Number).sort((a, b) => a - b);
      this.ranges.show([bins, bins.map((bin) => done.rows[bin])]);
    } else this.ranges.hide();
  }

  showLoops(view) {
    const parent = this.by("loops");
    parent.replaceChildren();
    if (!view.loops.length) { element("p", "No loop, or nothing in one.", parent, "hint"); return; }
    for (const loop of view.loops) {
      const isLog = view.mode === "log";
      const n = isLog ? loop.n_rounds : loop.under_way;
      const said = isLog ? `${n} round${n === 1 ? "" : "s"}` : `${n} time${n === 1 ? "" : "s"} under way`;
      element("p", `${loop.name} [${loop.address}]: ${said}`, parent);
      const most = Math.max(1, ...loop.rounds.map((each) => each[1]));
      const holder = element("div", "", parent);
      table(holder, [isLog ? "round" : "time (epoch, round)", "records", ""],
        loop.rounds.slice(0, isLog ? 24 : 8).map(([round, n]) => [round, amount(n), bar(n / most)]),
        "No records are in it at the moment.");
    }
  }
}
