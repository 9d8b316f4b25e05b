// The long parts of a view, which come as Arrow: the pieces of timelines, and series.
"use strict";

const N_POINTS = 600;

// What has been got of a running program is kept, and only what ended since is asked for.
class Columns {
  constructor(ask) { this.ask = ask; this.clear(); }

  clear() {
    this.at = -Infinity;
    this.rows = new Map();
    this.series = { t: [], records: [], epochs: [] };
  }

  async fill(view) {
    // A log that grows is drawn anew, in other slots; and a clock that went back is another one.
    if (view.mode === "log" || view.at < this.at) this.clear();
    this.at = view.at;
    const { workers } = view.timeline;
    for (const worker of workers) if (!this.rows.has(worker)) this.rows.set(worker, []);
    const ends = new Map([...this.rows].map(([worker, pieces]) => [worker, pieces.at(-1)?.[1] ?? -Infinity]));
    const [timeline, series] = await Promise.all([
      this.ask(`api/timeline${since(Math.min(...ends.values()))}`),
      this.ask(`api/series${since(this.series.t.at(-1) ?? -Infinity)}`),
    ]);
    this.takePieces(timeline, ends);
    for (const name of Object.keys(this.series)) {
      this.series[name] = [...this.series[name], ...numbers(series, name)].slice(-N_POINTS);
    }
    const { from } = view.timeline;
    view.timeline.rows = workers.map((worker) => {
      const segments = this.rows.get(worker).filter((each) => each[1] >= from);
      this.rows.set(worker, segments);
      return { worker, segments };
    });
    view.series = { ...this.series };
  }

  takePieces(table, ends) {
    const [worker, began, ended] = ["worker", "began", "ended"].map((name) => numbers(table, name));
    const what = table.getChild("what");
    for (let i = 0; i < table.numRows; i++) {
      const end = ends.get(worker[i]) ?? -Infinity;
      if (ended[i] <= end) continue; // was asked for, as another worker's last piece is older
      if (!this.rows.has(worker[i])) this.rows.set(worker[i], []);
      const pieces = this.rows.get(worker[i]), last = pieces.at(-1);
      if (last && last[1] === end && last[0] === began[i]) pieces.pop(); // it went on
      pieces.push([began[i], ended[i], what.get(i)]);
    }
  }
}

function since(moment) { return Number.isFinite(moment) ? `?since=${moment}` : ""; }

// A column without a row has no chunk to make an array of.
function numbers(table, name) { return table.numRows ? table.getChild(name).toArray() : []; }
