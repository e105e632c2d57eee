// The view of open graphs.

import { element, select, setText } from "../elements.js";
import { clock, count, cut, visible } from "../format.js";
import { GraphCanvas } from "../graphs/canvas.js";
import { diagramOf } from "../graphs/diagram.js";

export const graphs = {
  id: "graphs",
  title: "Graphs",
  icon: "M5 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5 17.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM15 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 5l6 4M7 15l6-4",
  topics: ["graphs", "tasks", "clients"],
  create: (context) => new Graphs(context),
};

const LEGEND = [["B", "blocked", "waits for inputs"], ["W", "waiting", "waits for a worker"], ["R", "running", "runs"], ["D", "done", "done"], ["F", "failed", "failed"]];
const MAX_CHOICES = 100;

class Graphs {
  constructor({ model, open }) {
    this.model = model;
    this.open = open;
    this.job = 0;
    this.layoutOf = this.graph = this.wanted = "";
    this.names = new Map();
    this.diagram = null;
    this.worker = new Worker(new URL("../graphs/layout_worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.#laidOut(data));
    this.#build();
  }

  update() {
    const { model } = this;
    model.graphStore.applyOutcomes(model.executions);
    const found = model.graphStore.graphs();
    const graph = this.#selectGraph(found);
    this.#updateChoices(found, graph);
    const open = found.reduce((sum, each) => sum + each.open, 0);
    setText(this.note, found.length ? `${count(found.length)} graph${found.length === 1 ? "" : "s"}, ${count(open)} open node${open === 1 ? "" : "s"}` : "");
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
    this.choice = select([], "", { "aria-label": "Graph", class: "long" });
    this.choice.addEventListener("change", () => {
      this.wanted = this.choice.value;
      this.update();
    });
    const buttons = [["−", "Zoom out (-)", () => this.canvas.zoom(1 / 1.4)], ["+", "Zoom in (+)", () => this.canvas.zoom(1.4)], ["All", "Show all (0)", () => this.canvas.fit()]].map(([text, label, act]) => {
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

  /** The graph that the user selected. Otherwise the one that is shown, until it has ended and another one is open. */
  #selectGraph(found) {
    const wanted = found.find((each) => each.key === this.wanted);
    if (wanted) return wanted;
    const shown = found.find((each) => each.key === this.graph);
    return shown?.open ? shown : (found.find((each) => each.open) ?? shown ?? found[0]);
  }

  #updateChoices(found, graph) {
    for (const row of this.model.clients ?? []) this.names.set(row.id, row.name);
    const choices = found.slice(0, MAX_CHOICES).map((graph) => [graph.key, this.#titleOf(graph)]);
    this.choice.hidden = !choices.length;
    const keys = choices.map(([key]) => key).join();
    if (keys !== this.choices) {
      this.choices = keys;
      this.choice.replaceChildren(...choices.map(([key, text]) => element("option", { value: key, text })));
    } else choices.forEach(([, text], at) => setText(this.choice.options[at], text));
    this.choice.value = graph?.key ?? "";
  }

  /** The graph's keys, start, progress and client. */
  #titleOf(graph) {
    const [done, failed] = ["done", "failed"].map((state) => graph.nodes.filter((node) => node.state === state).length);
    const parts = [
      visible(graph.keys) || cut(graph.nodes.at(-1).name, 40),
      graph.begun ? clock(graph.begun * 1000) : "",
      `${count(done)} of ${count(graph.nodes.length)} done${failed ? `, ${count(failed)} failed` : ""}`,
      visible(this.#clientName(graph.client)),
    ];
    return parts.filter(Boolean).join(" · ");
  }

  #clientName(client) {
    return this.names.get(client) || `client ${client}`;
  }

  handleKey(event) {
    return this.canvas.handleKey(event);
  }

  #show(graph) {
    const diagram = diagramOf(graph);
    setText(this.how, diagram.how);
    const layoutOf = `${graph.key} ${diagram.edges.length} ${diagram.nodes.map((node) => node.node?.key ?? node.label).join()}`;
    if (layoutOf === this.layoutOf) {
      this.diagram = diagram;
      if (this.isLaidOut) this.canvas.paint(diagram);
      return;
    }
    this.isNewGraph = graph.key !== this.graph;
    Object.assign(this, { layoutOf, diagram, graph: graph.key, isLaidOut: false });
    const sizes = diagram.nodes.map((node) => [node.width, node.height]);
    this.worker.postMessage({ job: ++this.job, sizes, edges: diagram.edges });
  }

  #laidOut(layout) {
    if (layout.job !== this.job || !this.layoutOf) return;
    this.isLaidOut = true;
    this.canvas.draw(this.diagram, layout, this.isNewGraph);
  }

  #openNode(node) {
    const known = this.model.executions.attemptsOf(node.client, node.id).at(-1);
    this.open(known ?? openTask(node, this.names.get(node.client) ?? ""));
  }
}

/** An open node in the shape of an execution. */
function openTask(node, clientName) {
  return {
    running: true,
    id: node.id,
    client: node.client,
    clientName,
    attempt: "–",
    worker: "",
    workerName: "",
    workerLabel: "",
    name: node.name,
    submitted: NaN,
    start: NaN,
    end: NaN,
    duration: NaN,
    outcome: { name: node.state, kind: "neutral" },
    error: "",
  };
}
