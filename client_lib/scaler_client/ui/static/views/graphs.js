// Open graphs while they run.

import { element, select, setText } from "../elements.js";
import { count, visible } from "../format.js";
import { GraphCanvas } from "../graphs/canvas.js";
import { sketchOf } from "../graphs/sketch.js";

export const graphs = {
  id: "graphs",
  title: "Graphs",
  icon: "M5 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5 17.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM15 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 5l6 4M7 15l6-4",
  topics: ["graphs", "tasks", "clients"],
  create: (context) => new Graphs(context),
};

const LEGEND = [["B", "blocked", "waits for inputs"], ["W", "waiting", "waits for a worker"], ["R", "running", "runs"], ["D", "done", "done"], ["F", "failed", "failed"]];
const MOST_CHOICES = 100;

class Graphs {
  constructor({ model, open }) {
    this.model = model;
    this.open = open;
    this.job = 0;
    this.layoutOf = this.graph = this.wanted = "";
    this.sketch = null;
    this.worker = new Worker(new URL("../graphs/layout_worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.#laidOut(data));
    this.#build();
  }

  update() {
    const { model } = this;
    model.graphBook.settle(model.executions);
    const found = model.graphBook.graphs();
    const graph = this.#chosenOf(found);
    this.#offer(found, graph);
    const { total } = model.graphBook;
    setText(this.note, found.length ? `${count(found.length)} graph${found.length === 1 ? "" : "s"}, ${count(total)} open nodes` : "");
    this.empty.hidden = Boolean(graph);
    if (graph) this.#show(graph);
    else {
      this.layoutOf = "";
      this.canvas.clear();
      setText(this.how, "");
    }
  }

  #build() {
    this.note = element("span", { class: "note" });
    this.how = element("span", { class: "note", role: "status" });
    this.choice = select([], "", { "aria-label": "Graph" });
    this.choice.addEventListener("change", () => {
      this.wanted = this.choice.value;
      this.update();
    });
    const buttons = [["−", "Zoom out (-)", () => this.canvas.zoom(1 / 1.4)], ["+", "Zoom in (+)", () => this.canvas.zoom(1.4)], ["All", "See all (0)", () => this.canvas.fit()]].map(([text, label, act]) => {
      const button = element("button", { type: "button", text, title: label, "aria-label": label });
      button.addEventListener("click", act);
      return button;
    });
    this.canvas = new GraphCanvas((node) => this.#openNode(node));
    this.empty = element("p", { class: "empty", text: "No graphs are open" });
    const legend = LEGEND.map(([letter, state, text]) => element("li", {}, element("i", { class: state }), element("span", { text: `${letter} ${text}` })));
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Graphs" }), this.note),
      element("div", { class: "tools" }, this.choice, ...buttons, this.how),
      element("ul", { class: "legend", "aria-label": "States" }, ...legend),
      element("div", { class: "graph" }, this.canvas.element, this.empty),
    );
  }

  /** The one that a person wants; else that which is shown, until it is over and another one runs. */
  #chosenOf(found) {
    const wanted = found.find((each) => each.key === this.wanted);
    if (wanted) return wanted;
    const shown = found.find((each) => each.key === this.graph);
    return shown?.open ? shown : (found.find((each) => each.open) ?? shown ?? found[0]);
  }

  #offer(found, graph) {
    const names = new Map((this.model.clients ?? []).map((row) => [row.id, row.name]));
    const offered = found.slice(0, MOST_CHOICES).map((graph) => {
      const done = graph.nodes.filter((node) => node.state === "done").length;
      return [graph.key, `${visible(names.get(graph.client) || `client ${graph.client}`)}: ${count(done)} of ${count(graph.nodes.length)} done`];
    });
    this.choice.hidden = !offered.length;
    const keys = offered.map(([key]) => key).join();
    if (keys !== this.offered) {
      this.offered = keys;
      this.choice.replaceChildren(...offered.map(([key, text]) => element("option", { value: key, text })));
    } else offered.forEach(([, text], at) => setText(this.choice.options[at], text));
    this.choice.value = graph?.key ?? "";
  }

  #show(graph) {
    const sketch = sketchOf(graph);
    setText(this.how, sketch.how);
    const layoutOf = `${graph.key} ${sketch.edges.length} ${sketch.nodes.map((node) => node.node?.key ?? node.label).join()}`;
    if (layoutOf === this.layoutOf) {
      this.sketch = sketch;
      if (this.isLaidOut) this.canvas.paint(sketch);
      return;
    }
    this.isAnew = graph.key !== this.graph;
    Object.assign(this, { layoutOf, sketch, graph: graph.key, isLaidOut: false });
    const sizes = sketch.nodes.map((node) => [node.width, node.height]);
    this.worker.postMessage({ job: ++this.job, sizes, edges: sketch.edges });
  }

  #laidOut(layout) {
    if (layout.job !== this.job || !this.layoutOf) return;
    this.isLaidOut = true;
    this.canvas.draw(this.sketch, layout, this.isAnew);
  }

  #openNode(node) {
    const known = this.model.executions.attemptsOf(node.client, node.id).at(-1);
    this.open(known ?? openTask(node));
  }
}

/** A node that has not ended, in the shape of an execution. */
function openTask(node) {
  return {
    running: true,
    id: node.id,
    client: node.client,
    clientName: "",
    attempt: "–",
    worker: "",
    workerName: "",
    name: node.name,
    submitted: NaN,
    start: NaN,
    end: NaN,
    duration: NaN,
    outcome: { name: node.state, kind: "neutral" },
    error: "",
  };
}
