// Puts the page together: asks for the structure once it changes, and for a view each second.
"use strict";

const EVERY_MS = 1000;
const EXPLAIN_EVERY_MS = 2000;

const status = document.getElementById("status");
const names = new Map();
const nameOf = (what) => ({ parked: "parked", program: "the program, and the rest",
  progress: "progress" }[what] || names.get(what) || what);
const graph = new Graph(document.getElementById("drawing"), (address) => select(address));
const panels = new Panels(nameOf);
const columns = new Columns(askArrow);
let known = "", view = null, selected = "", explained = 0;

// In a frame of another page there is no cookie: the token is in the address of the page alone.
const token = new URLSearchParams(location.search).get("token");

function withToken(path) {
  if (!token) return path;
  return `${path}${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}`;
}

function get(path) {
  return fetch(withToken(path), { credentials: "same-origin" })
    .catch(() => { throw new Error("the page is not served any more"); });
}

async function askArrow(path) {
  const answer = await get(path);
  if (!answer.ok) throw new Error(await answer.text());
  return Arrow.tableFromIPC(new Uint8Array(await answer.arrayBuffer()));
}

async function ask(path) {
  const answer = await get(path);
  const found = await answer.json().catch(() => ({ error: `${answer.status}` }));
  if (!answer.ok) throw new Error(found.error || String(answer.status));
  return found;
}

function say(text, cls) { status.textContent = text; status.className = cls || ""; }

async function loadStructure() {
  const structure = await ask("api/structure");
  const key = structure.operators.map((each) => each.address).join() + structure.streams.length;
  if (key === known) return;
  known = key;
  names.clear();
  for (const each of structure.operators) names.set(each.address, each.name);
  say("placing the graph");
  await graph.show(structure);
  document.body.dataset.operators = String(structure.operators.length);
  document.body.dataset.layoutMs = String(Math.round(graph.layoutMs));
}

async function tick() {
  let again = EVERY_MS;
  try {
    const figures = await ask("api/view");
    await columns.fill(figures);
    view = figures;
    document.getElementById("title").textContent = view.title;
    const notes = document.getElementById("notes");
    notes.hidden = !view.notes.length;
    notes.textContent = view.notes.join("; ");
    const unknown = Object.keys(view.operators).some((address) => !names.has(address));
    if (!known || unknown) await loadStructure();
    graph.update(view);
    panels.show(view);
    say(view.mode === "log" ? (view.is_over ? "a log" : "a log that grows")
      : view.is_over ? "the program has ended; this was its last second" : "live",
    view.is_over ? "over" : "");
    if (view.mode === "log" && view.is_over) again = 0;
    if (selected && view.mode === "live" && performance.now() - explained > EXPLAIN_EVERY_MS) {
      await explain();
    }
    document.body.dataset.ready = "yes";
  } catch (error) {
    say(view ? `no answer: ${error.message}; this is the last view` : error.message, view ? "lost" : "over");
    document.body.dataset.failed = error.message;
  }
  if (again) setTimeout(tick, again);
}

async function select(address) {
  selected = graph.selected = address;
  graph.light([]);
  await explain().catch((error) => {
    const parent = document.getElementById("details");
    parent.replaceChildren();
    element("h2", `${names.get(address)} [${address}]`, parent);
    element("p", error.message, parent, "hint");
  });
}

async function explain() {
  explained = performance.now();
  const address = selected;
  const found = await ask(`api/explain?operator=${encodeURIComponent(address)}`);
  if (address !== selected) return;
  graph.light(found.workers.flatMap((worker) => worker.holders.map((each) => each.path)));
  showDetails(address, found);
}

// A file with its folder; the rest is said where the mouse is over it.
function place(parent, before, line, after) {
  const said = element("p", `${before}${line.split("/").slice(-2).join("/")}${after}`, parent, "hint");
  said.title = line;
}

function showDetails(address, found) {
  const parent = document.getElementById("details");
  const operator = graph.structure.operators.find((each) => each.address === address);
  const figures = view.operators[address];
  parent.replaceChildren();
  element("h2", `${operator.name} [${address}]`, parent);
  if (operator.line) place(parent, "made at ", operator.line, "");
  if (figures) {
    const said = [`own time ${percent(figures.share)}`, `${amount(figures.waiting)} records wait`];
    if (figures.seconds !== undefined) said.push(duration(figures.seconds), `${figures.activations} activations`);
    element("p", said.join(", "), parent);
    if (figures.held.length) {
      element("p", "outstanding there: " + figures.held.map(([time, n]) => `${time} × ${n}`).join(", "), parent);
    }
    for (const [line, n, worker] of figures.lines) {
      place(parent, "at ", line, `: seen there ${n} times on worker ${worker}`);
    }
  }
  const holders = found.workers.flatMap((worker) =>
    worker.holders.map((each) => ({ ...each, asked: worker.worker })));
  element("h2", "What could still produce its earliest times", parent);
  if (!holders.length) element("p", "Nothing that is known.", parent, "hint");
  for (const each of holders.slice(0, 40)) {
    const box = element("div", "", parent, `holder ${each.is_here ? "here" : ""}`);
    const holder = graph.structure.operators.find((one) => one.address === each.operator);
    element("div", each.text.replaceAll("->", "→"), box); // a line may end within "->"
    const what = `as worker ${each.asked} knows: ${each.what} of ${holder ? holder.name : each.operator}`;
    if (holder && holder.line) place(box, `${what}, made at `, holder.line, "");
    else element("p", what, box, "hint");
  }
  for (const worker of found.workers.filter((each) => each.account)) {
    const more = element("details", "", parent);
    element("summary", `all that worker ${worker.worker} says`, more);
    element("pre", worker.account, more);
  }
}

for (const each of document.querySelectorAll("input[name=mode]")) {
  each.addEventListener("change", () => {
    graph.mode = each.value;
    if (view) graph.update(view);
  });
}
document.getElementById("fit").addEventListener("click", () => graph.fit());
window.addEventListener("resize", () => { if (view) panels.show(view); });
isDark.addEventListener("change", () => { if (view) panels.show(view); });
// A program can link to an operator: #operator=0/3, and to a colour: #mode=held.
const asked = new URLSearchParams(location.hash.slice(1));
const mode = document.querySelector(`input[name=mode][value="${CSS.escape(asked.get("mode") || "")}"]`);
if (mode) { mode.checked = true; graph.mode = mode.value; }
tick().then(() => {
  const address = asked.get("operator");
  if (address && names.has(address)) return select(address);
  return null;
});
