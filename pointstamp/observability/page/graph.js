// The dataflow as nested boxes: ELK places them, what is here draws, colours and lights them up.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const MOST_LABELLED = 250; // with more streams than this, counts are shown for what is selected

function svg(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.appendChild(made);
  return made;
}

function short(name, most) {
  return name.length > most ? name.slice(0, most - 1) + "…" : name;
}

class Graph {
  constructor(drawing, onSelect) {
    this.drawing = drawing;
    this.onSelect = onSelect;
    this.elk = new ELK({ workerUrl: `vendor/elk-worker.min.js${location.search}` });
    this.boxes = new Map();
    this.streams = new Map();
    this.lit = new Set();
    this.mode = "share";
    this.selected = "";
    this.whole = [0, 0, 100, 100];
    this.box = this.whole;
    this.listen();
  }

  // Lays out and draws a structure; takes seconds for thousands of operators, on another thread.
  async show(structure) {
    this.structure = structure;
    const began = performance.now();
    const layout = await this.elk.layout(this.asElk(structure));
    this.layoutMs = performance.now() - began;
    this.draw(layout);
    // As high as it needs to be; its corner can be dragged.
    const frame = this.drawing.parentElement;
    const wanted = frame.clientWidth * layout.height / Math.max(1, layout.width) + 20;
    frame.style.height = `${Math.round(Math.min(440, Math.max(200, wanted)))}px`;
    this.fit();
  }

  asElk(structure) {
    const nodes = new Map();
    const root = { id: "root", children: [], edges: [], layoutOptions: {
      "elk.algorithm": "layered", "elk.direction": "RIGHT",
      "elk.spacing.componentComponent": "30", "elk.padding": "[top=10,left=10,bottom=10,right=10]" } };
    this.isLabelled = structure.streams.length <= MOST_LABELLED;
    for (const each of structure.operators) {
      const node = { id: each.address, ports: [], operator: each };
      if (each.kind === "operator") {
        node.width = Math.max(112, 7.2 * short(each.name, 26).length + 16);
        node.height = 44;
        node.layoutOptions = { "elk.portConstraints": "FIXED_SIDE" };
      } else {
        node.children = [];
        node.edges = [];
        node.layoutOptions = {
          "elk.algorithm": "layered", "elk.direction": "RIGHT",
          "elk.portConstraints": "FIXED_SIDE",
          "elk.padding": "[top=30,left=22,bottom=18,right=22]",
          "elk.layered.feedbackEdges": "true",
          "elk.layered.spacing.nodeNodeBetweenLayers": this.isLabelled ? "22" : "24",
          "elk.spacing.edgeNode": "14",
          "elk.edgeLabels.placement": "CENTER",
          "elk.layered.thoroughness": structure.operators.length > 300 ? "2" : "7",
          "elk.layered.nodePlacement.strategy":
            structure.operators.length > 300 ? "LINEAR_SEGMENTS" : "BRANDES_KOEPF",
        };
      }
      nodes.set(each.address, node);
    }
    for (const node of nodes.values()) {
      const parent = nodes.get(node.operator.parent) || root;
      parent.children.push(node);
    }
    const port = (address, side, number) => {
      const node = nodes.get(address);
      const id = `${address}:${side}${number}`;
      if (!node.ports.some((each) => each.id === id)) {
        node.ports.push({ id, width: 1, height: 1,
          layoutOptions: { "elk.port.side": side === "i" ? "WEST" : "EAST" } });
      }
      return id;
    };
    for (const each of structure.streams) {
      if (!nodes.has(each.source) || !nodes.has(each.target) || !nodes.has(each.scope)) continue;
      const source = port(each.source, each.source === each.scope ? "i" : "o", each.source_port);
      const target = port(each.target, each.target === each.scope ? "o" : "i", each.target_port);
      // It leads to what was made before, and is drawn back.
      const number = (address) => Number(address.slice(address.lastIndexOf("/") + 1));
      const closes = each.source !== each.scope && each.target !== each.scope &&
        number(each.target) <= number(each.source);
      nodes.get(each.scope).edges.push({
        id: each.stream, sources: [source], targets: [target], stream: each,
        labels: this.isLabelled ? [{ text: "n", width: 50, height: 24 }] : [],
        layoutOptions: { "elk.layered.priority.direction": closes ? "0" : "10" },
      });
    }
    return root;
  }

  draw(layout) {
    this.drawing.replaceChildren();
    this.boxes.clear();
    this.streams.clear();
    const definitions = svg("defs", {}, this.drawing);
    const tip = svg("marker", { id: "tip", viewBox: "0 0 10 10", refX: 8, refY: 5,
      markerWidth: 9, markerHeight: 9, orient: "auto", markerUnits: "userSpaceOnUse" }, definitions);
    svg("path", { d: "M 0 1 L 9 5 L 0 9 z" }, tip);
    const frames = svg("g", {}, this.drawing);
    const lines = svg("g", {}, this.drawing);
    const boxes = svg("g", {}, this.drawing);
    const walk = (node, left, top) => {
      for (const child of node.children || []) {
        const x = left + child.x, y = top + child.y;
        if (child.operator.kind === "operator") this.drawOperator(boxes, child, x, y);
        else {
          const title = svg("rect", { x, y, width: child.width, height: child.height, rx: 9,
            class: `scope ${child.operator.kind}` }, frames);
          svg("title", {}, title).textContent = `${child.operator.kind} ${child.operator.name}`;
          svg("text", { x: x + 10, y: y + 17, class: "small" }, frames).textContent =
            child.operator.name;
        }
        walk(child, x, y);
      }
      for (const edge of node.edges || []) this.drawStream(lines, edge, left, top);
    };
    walk(layout, 0, 0);
    this.whole = [0, 0, layout.width, layout.height];
  }

  drawOperator(parent, node, x, y) {
    const each = node.operator;
    const group = svg("g", { "data-operator": each.address }, parent);
    const rect = svg("rect", { x, y, width: node.width, height: node.height, rx: 6,
      class: `operator ${each.role}` }, group);
    const title = svg("title", {}, rect);
    const name = svg("text", { x: x + node.width / 2, "text-anchor": "middle" }, group);
    name.textContent = short(each.name, 26);
    const said = svg("text", { x: x + node.width / 2, y: y + 34, "text-anchor": "middle",
      class: "small" }, group);
    group.addEventListener("click", () => this.onSelect(each.address));
    const box = { rect, name, said, title, operator: each, width: node.width, y };
    this.boxes.set(each.address, box);
    this.say(box, "");
  }

  // What is said below a name; without it the name is in the middle.
  say(box, text) {
    box.said.textContent = text;
    box.name.setAttribute("y", box.y + (text ? 18 : 26));
  }

  drawStream(parent, edge, left, top) {
    for (const section of edge.sections || []) {
      const points = [section.startPoint, ...(section.bendPoints || []), section.endPoint]
        .map((point) => [point.x + left, point.y + top]);
      const isBack = points[points.length - 1][0] < points[0][0];
      const exchanged = !["pipeline", "enter", "leave"].includes(edge.stream.pact);
      const path = svg("path", { d: "M " + points.map((point) => point.join(" ")).join(" L "),
        class: `stream ${exchanged ? "exchange" : ""} ${isBack ? "back" : ""}`,
        "data-stream": edge.stream.stream }, parent);
      const title = svg("title", {}, path);
      let texts = [];
      const label = (edge.labels || [])[0];
      if (label && label.x !== undefined) {
        const x = left + label.x + label.width / 2, y = top + label.y;
        texts = [svg("text", { x, y: y + 9, "text-anchor": "middle", class: "count" }, parent),
          svg("text", { x, y: y + 20, "text-anchor": "middle", class: "small" }, parent)];
      }
      this.streams.set(edge.stream.stream, { path, title, texts, stream: edge.stream });
    }
  }

  // Numbers and colours of a view.
  update(view) {
    this.view = view;
    let most = 0;
    for (const each of Object.values(view.operators)) most = Math.max(most, this.value(each));
    for (const [address, box] of this.boxes) {
      const each = view.operators[address];
      if (!each) { this.say(box, ""); continue; }
      box.rect.style.fill = this.colour(this.value(each), most);
      const said = [];
      if (each.share >= 0.0005) said.push(`${(100 * each.share).toFixed(1)} %`);
      if (each.waiting) said.push(`${amount(each.waiting)} wait`);
      if (this.mode === "held" && each.held.length) said.push(`holds ${each.held[0][0]}`);
      this.say(box, short(said.join(" · "), Math.floor(box.width / 6.2)));
      box.title.textContent = `${box.operator.name} [${address}]\n${box.operator.line || ""}`;
    }
    for (const [name, drawn] of this.streams) {
      const each = view.streams[name];
      if (!each) continue;
      const rate = view.mode === "log" ? amount(each.records) : `${amount(each.rate)}/s`;
      const frontier = each.frontier.length ? each.frontier.slice(0, 2).join(" ") : "—";
      drawn.title.textContent = `${drawn.stream.pact}: ${rate}, ${amount(each.records)} records, ` +
        `frontier {${each.frontier.join(", ")}}`;
      if (drawn.texts.length) {
        drawn.texts[0].textContent = rate;
        drawn.texts[1].textContent = short(frontier, 14);
      }
    }
    this.mark();
  }

  value(each) {
    if (this.mode === "share") return each.share;
    if (this.mode === "waiting") return Math.log1p(each.waiting) + (each.is_above ? 5 : 0);
    return each.is_earliest ? 2 : each.held.length ? 1 : 0;
  }

  colour(value, most) {
    const part = most > 0 ? 65 * value / most : 0; // so that texts stay readable
    const full = { share: "#f28e2b", waiting: "#d1495b" }[this.mode] || "#8e5ea2";
    return `color-mix(in srgb, ${full} ${part.toFixed(1)}%, var(--paper))`;
  }

  light(paths) {
    this.lit = new Set();
    for (const path of paths) {
      for (const address of path) this.lit.add(address);
    }
    this.mark();
  }

  mark() {
    for (const [address, box] of this.boxes) {
      box.rect.classList.toggle("lit", this.lit.has(address));
      box.rect.classList.toggle("selected", address === this.selected);
    }
    const on = (address) => this.lit.has(address) ||
      [...this.lit].some((each) => each.startsWith(address + "/"));
    for (const drawn of this.streams.values()) {
      const { source, target } = drawn.stream;
      drawn.path.classList.toggle("lit", this.lit.size > 0 && on(source) && on(target));
    }
  }

  // Moving about.
  fit() { this.box = this.padded(); this.setBox(); }

  padded() {
    const [x, y, width, height] = this.whole;
    return [x, y, Math.max(width, 200), Math.max(height, 120)];
  }

  setBox() { this.drawing.setAttribute("viewBox", this.box.join(" ")); }

  listen() {
    // Where each finger, or the mouse, is: one moves the picture, two zoom it.
    const fingers = new Map();
    const middle = () => {
      const points = [...fingers.values()], n = points.length;
      const x = points.reduce((sum, each) => sum + each[0], 0) / n;
      const y = points.reduce((sum, each) => sum + each[1], 0) / n;
      return [x, y, Math.hypot(points[0][0] - x, points[0][1] - y)];
    };
    this.drawing.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, (event) => fingers.delete(event.pointerId));
    }
    window.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const [fromX, fromY, fromApart] = middle();
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      const [x, y, apart] = middle(), scale = this.scale();
      this.box = [this.box[0] - (x - fromX) * scale, this.box[1] - (y - fromY) * scale,
        this.box[2], this.box[3]];
      this.setBox();
      if (fromApart && apart) this.zoom(x, y, fromApart / apart);
    });
    this.drawing.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.clientX, event.clientY, Math.exp(event.deltaY / 600));
    }, { passive: false });
  }

  // What is at a place of the window stays there.
  zoom(left, top, factor) {
    const at = new DOMPoint(left, top).matrixTransform(this.drawing.getScreenCTM().inverse());
    const [x, y, width, height] = this.box;
    this.box = [at.x + (x - at.x) * factor, at.y + (y - at.y) * factor,
      width * factor, height * factor];
    this.setBox();
  }

  scale() {
    return Math.max(this.box[2] / this.drawing.clientWidth, this.box[3] / this.drawing.clientHeight);
  }
}
