// The drawing of a graph, which can be moved and zoomed.

import { drawing } from "../elements.js";
import { attachGestures } from "../gestures.js";

const [MIN_SCALE, MAX_SCALE] = [0.05, 3];
const MIN_LEGIBLE_SCALE = 0.5;
const KEY_PAN_PIXELS = 60;
const LETTERS = { blocked: "B", waiting: "W", running: "R", done: "D", failed: "F" };

export class GraphCanvas {
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.space = drawing("g");
    this.element = drawing("svg", {
      role: "application",
      tabindex: "0",
      "aria-label": "Graph. Arrow keys move, plus and minus zoom, 0 shows all.",
    }, this.space);
    this.nodes = [];
    this.size = null;
    this.isMoved = false;
    this.element.addEventListener("keydown", (event) => this.#handleKey(event));
    attachGestures(this.element, {
      drag: (dx, dy) => this.#moveBy(dx, dy),
      zoom: (factor, x, y) => this.#zoom(factor, x, y),
      tap: (x, y) => this.#tap(x, y),
    });
    new ResizeObserver(() => this.isMoved || this.resetView()).observe(this.element);
  }

  clear() {
    this.space.replaceChildren();
    this.nodes = [];
    this.size = null;
  }

  /** Draw a diagram at the places of a layout. `isNewGraph` also resets the user's position. */
  draw(diagram, layout, isNewGraph) {
    this.size = layout;
    const edges = layout.lines.map((points) => drawing("path", { class: "edge", d: curve(points) }));
    this.nodes = diagram.nodes.map((node, number) => this.#node(node, layout.places[number]));
    this.space.replaceChildren(...edges, ...this.nodes.map((node) => node.element));
    this.paint(diagram);
    if (isNewGraph || !this.isMoved) this.resetView();
  }

  /** Update the states of the nodes. */
  paint(diagram) {
    diagram.nodes.forEach((each, number) => {
      const node = this.nodes[number];
      node.diagram = each;
      if (node.shown === each.title) return;
      node.shown = each.title;
      node.element.dataset.state = each.state;
      node.letter.textContent = LETTERS[each.state] ?? "?";
      node.title.textContent = each.title;
      if (node.under) node.under.textContent = each.under;
    });
  }

  /** Show the whole graph, or its beginning if the whole would be illegible. */
  resetView() {
    this.fit();
    if (!this.size || this.scale >= MIN_LEGIBLE_SCALE) return;
    const { clientWidth, clientHeight } = this.element;
    const left = Math.max(0, (clientWidth - this.size.width * MIN_LEGIBLE_SCALE) / 2);
    this.#place(MIN_LEGIBLE_SCALE, left, Math.min(0, (clientHeight - this.size.height * MIN_LEGIBLE_SCALE) / 2));
  }

  fit() {
    const { clientWidth, clientHeight } = this.element;
    if (!this.size || !clientWidth) return;
    const scale = Math.min(1.2, clientWidth / this.size.width, clientHeight / this.size.height);
    this.isMoved = false;
    this.#place(scale, (clientWidth - this.size.width * scale) / 2, (clientHeight - this.size.height * scale) / 2);
  }

  zoom(factor) {
    this.#zoom(factor, this.element.clientWidth / 2, this.element.clientHeight / 2);
  }

  #node(diagram, [x, y]) {
    const [left, top] = [x - diagram.width / 2, y - diagram.height / 2];
    const letter = drawing("text", { class: "letter", x: left + 15, y: y + 4 });
    const title = drawing("title");
    const label = drawing("text", { x: left + 30, y: diagram.under ? y - 4 : y + 4, text: diagram.label });
    const parts = [
      title,
      drawing("rect", { x: left, y: top, width: diagram.width, height: diagram.height, rx: 6 }),
      drawing("circle", { class: "badge", cx: left + 15, cy: y, r: 9 }),
      letter,
      label,
    ];
    const under = diagram.under ? drawing("text", { x: left + 30, y: y + 13 }) : null;
    if (under) parts.push(under);
    const element = drawing("g", { class: "node" }, ...parts);
    const created = { element, letter, title, under, diagram };
    element.node = created;
    return created;
  }

  #place(scale, x, y) {
    Object.assign(this, { scale, x, y });
    this.space.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }

  #moveBy(dx, dy) {
    this.isMoved = true;
    this.#place(this.scale, this.x + dx, this.y + dy);
  }

  #zoom(factor, x, y) {
    if (!this.size) return;
    this.isMoved = true;
    const scale = Math.max(MIN_SCALE, Math.min(MAX_SCALE, this.scale * factor));
    const change = scale / this.scale;
    this.#place(scale, x - (x - this.x) * change, y - (y - this.y) * change);
  }

  #tap(x, y) {
    const box = this.element.getBoundingClientRect();
    const found = document.elementFromPoint(box.left + x, box.top + y)?.closest(".node");
    if (found?.node.diagram.node) this.onOpen(found.node.diagram.node);
  }

  /** Handle a key, also when the drawing has no focus. Returns whether it was a key of the drawing. */
  handleKey(event) {
    return this.#handleKey(event);
  }

  #handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.size) return false;
    const moves = { ArrowLeft: [KEY_PAN_PIXELS, 0], ArrowRight: [-KEY_PAN_PIXELS, 0], ArrowUp: [0, KEY_PAN_PIXELS], ArrowDown: [0, -KEY_PAN_PIXELS] };
    if (event.key in moves) this.#moveBy(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0" || event.key === "Home") this.fit();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}

/** A smooth path through all points. */
function curve(points) {
  const [[x, y], ...rest] = points;
  let path = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  for (let at = 0; at < rest.length - 1; at++) {
    const [now, next] = [rest[at], rest[at + 1]];
    const end = at === rest.length - 2 ? next : [(now[0] + next[0]) / 2, (now[1] + next[1]) / 2];
    path += `Q${now[0].toFixed(1)} ${now[1].toFixed(1)} ${end[0].toFixed(1)} ${end[1].toFixed(1)}`;
  }
  return rest.length === 1 ? `${path}L${rest[0][0]} ${rest[0][1]}` : path;
}
