// The view of the timeline: which worker ran which task when.

import { SearchField, element, setText } from "../elements.js";
import { count, cut, duration, visible } from "../format.js";
import { attachGestures } from "../gestures.js";
import { DENSITIES } from "../settings.js";
import { findAt } from "../timeline/lane_layout.js";
import { AXIS_HEIGHT, Painter } from "../timeline/painter.js";
import { Tooltip } from "../timeline/tooltip.js";
import { Viewport } from "../timeline/viewport.js";
import { runningTask } from "./tasks.js";

export const timeline = {
  id: "timeline",
  title: "Timeline",
  icon: "M3 5h6M6 10h8M11 15h6M3 3v14",
  topics: ["tasks", "running", "workers", "clients"],
  create: (context) => new Timeline(context),
};

const WIDE = 720;
const MAX_LEGEND = 12;
const POINTER_TOLERANCE = 3;
const KEY_PAN_PIXELS = 80;
const MAX_ROW_HEIGHT = 32;
const MIN_WINDOW = 10_000;
const NATURAL = new Intl.Collator("en", { numeric: true });

class Timeline {
  constructor({ model, settings, theme, open }) {
    Object.assign(this, { model, settings, theme, open });
    this.viewport = new Viewport(settings.get("window") * 1000);
    this.lanes = [];
    this.running = new Map();
    this.selected = null;
    this.hovered = null;
    this.tooltip = new Tooltip();
    this.isShown = this.isDrawRequested = false;
    this.frames = 0;
    this.#build();
    this.painter = new Painter(this.canvas, theme);
    this.#listen();
  }

  show() {
    this.isShown = true;
    this.#resize();
  }

  hide() {
    this.isShown = false;
    this.#clearHover();
  }

  update() {
    const { model } = this;
    this.lanes = this.#lanesInOrder();
    this.running = new Map(model.running.map((row) => [row.worker, { ...runningTask(row, model), function: model.executions.functions.ofRunning(row.name) }]));
    this.#resize();
    const gone = this.lanes.filter((lane) => !lane.isConnected).length;
    const workers = `${count(this.lanes.length - gone)} workers${gone ? ` and ${count(gone)} former ${gone === 1 ? "worker" : "workers"}` : ""}`;
    setText(this.note, `${count(model.executions.length)} tasks on ${model.workers === null ? `${count(this.lanes.length)} workers` : workers}`);
    setText(this.empty, this.search.isEmpty ? "No tasks in the window yet" : "No worker matches the filter");
    this.empty.hidden = model.executions.length + this.running.size > 0 && this.lanes.length > 0;
    this.#legend();
    this.#requestDraw();
  }

  #build() {
    this.note = element("span", { class: "note" });
    this.search = new SearchField("Filter workers", () => this.update());
    this.live = element("button", { type: "button", "aria-pressed": "true", text: "Follow" });
    this.buttons = [["−", "Zoom out (-)", () => this.#zoom(1 / 1.6)], ["+", "Zoom in (+)", () => this.#zoom(1.6)], ["All", "Show all (0)", () => this.#fit()]].map(([text, label, act]) => {
      const button = element("button", { type: "button", text, title: label, "aria-label": label });
      button.addEventListener("click", act);
      return button;
    });
    this.legend = element("ul", { class: "legend", "aria-label": "Colours" });
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": "Timeline of tasks by worker. Arrow keys move, plus and minus zoom, comma and full stop go to the previous and next task, Enter opens it.",
    });
    this.sizer = element("div", {}, this.canvas);
    this.scroller = element("div", { class: "scroller", tabindex: "-1" }, this.sizer);
    this.empty = element("p", { class: "empty" });
    this.box = element("div", { class: "timeline" }, this.scroller, this.empty);
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Timeline" }), this.note),
      element("div", { class: "tools" }, this.search.element, this.live, ...this.buttons),
      this.legend,
      this.box,
      this.tooltip.element,
      this.tooltip.announcement,
    );
  }

  #listen() {
    this.live.addEventListener("click", () => this.#follow(!this.viewport.isFollowing));
    this.scroller.addEventListener("scroll", () => this.#requestDraw());
    this.canvas.addEventListener("keydown", (event) => this.#handleKey(event));
    this.canvas.addEventListener("blur", () => this.#clearHover());
    this.settings.onChange((name) => name === "density" && this.update());
    new ResizeObserver(() => this.#resize()).observe(this.scroller);
    attachGestures(this.canvas, {
      drag: (dx, dy) => {
        if (dx) this.viewport.pan(-dx);
        this.scroller.scrollTop -= dy;
        this.#requestDraw();
      },
      zoom: (factor, x) => this.#zoom(factor, x - this.gutter),
      wheel: (event, x) => this.#wheel(event, x),
      hover: (x, y, event) => this.#hover(x, y, event),
      leave: () => this.#clearHover(),
      tap: (x, y) => this.#tap(x, y),
    });
  }

  /** The height that the user selected, or more if there is room. */
  get rowHeight() {
    const room = (this.scroller.clientHeight - AXIS_HEIGHT) / Math.max(1, this.lanes.length);
    return Math.max(DENSITIES[this.settings.get("density")], Math.min(MAX_ROW_HEIGHT, Math.floor(room)));
  }

  /** The start of the window, or of the data in it. */
  #oldest(now) {
    const { model } = this;
    const begin = now - model.windowSeconds * 1000;
    if (!model.executions.length) return begin;
    return Math.max(begin, Math.min(now - MIN_WINDOW, model.executions.earliest));
  }

  #lanesInOrder() {
    const { model } = this;
    const lanes = model.executions.lanes.includeWorkers(model.workers ?? [], model.lastMessageTime ?? model.now);
    const shown = lanes.filter((lane) => this.search.isEmpty || this.search.matches(lane.name));
    return shown.sort((left, right) => rankOf(left) - rankOf(right) || NATURAL.compare(left.name, right.name) || (left.worker < right.worker ? -1 : 1));
  }

  #resize() {
    const { clientWidth, clientHeight } = this.scroller;
    if (!clientWidth || !clientHeight) return;
    this.gutter = clientWidth < WIDE ? this.painter.gutterFor(this.lanes, 60, 110) : this.painter.gutterFor(this.lanes, 110, 260);
    this.viewport.width = Math.max(50, clientWidth - this.gutter);
    this.sizer.style.height = `${Math.max(clientHeight, AXIS_HEIGHT + this.lanes.length * this.rowHeight)}px`;
    this.painter.resize(clientWidth, clientHeight);
    this.#requestDraw();
  }

  /** Draw with the next frame. */
  #requestDraw() {
    if (this.isDrawRequested || !this.isShown) return;
    this.isDrawRequested = true;
    requestAnimationFrame(() => {
      this.isDrawRequested = false;
      if (this.isShown) this.#draw();
    });
  }

  #draw() {
    const { model, viewport } = this;
    const now = model.now;
    viewport.setRange(this.#oldest(now), now);
    const { lanes, running, gutter, rowHeight, selected } = this;
    const done = this.painter.paint({ lanes, running, viewport, gutter, rowHeight, selected, scrollTop: this.scroller.scrollTop, until: model.lastMessageTime ?? now });
    const shown = { ...done, frames: ++this.frames, from: viewport.from, to: viewport.to };
    Object.assign(this.canvas.dataset, shown);
    this.live.setAttribute("aria-pressed", String(viewport.isFollowing));
    if (viewport.isFollowing && !this.theme.reducedMotion && model.presence?.presence === "up") this.#scheduleNextDraw();
  }

  /** Draw again as soon as following moves the drawing by a pixel. */
  #scheduleNextDraw() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#requestDraw(), Math.min(1000, Math.max(16, this.viewport.span / this.viewport.width)));
  }

  #legend() {
    const used = this.model.executions.functions.all.filter((each) => each.executions > 0);
    used.sort((left, right) => right.executions - left.executions);
    const shown = used.slice(0, MAX_LEGEND);
    const hasRestarts = this.lanes.some((lane) => lane.processes.length > 1);
    const signature = `${this.theme.name} ${used.length} ${hasRestarts} ${shown.map((each) => each.number).join()}`;
    if (signature === this.signature) return;
    this.signature = signature;
    const items = shown.map((each) => legendItem(cut(each.name, 40), visible(each.name), "", this.theme.functionColour(each.colour)));
    if (used.length > shown.length) items.push(legendItem(`and ${count(used.length - shown.length)} more`, "", ""));
    if (used.length) items.push(legendItem("failed", "Hatched, or a red line", "hatched"), legendItem("runs", "Pale, open at its end", "open"));
    if (hasRestarts) items.push(legendItem("restarted", "From there on another process has the worker's name", "restarted"));
    this.legend.replaceChildren(...items);
  }

  #zoom(factor, x) {
    this.viewport.zoom(factor, x);
    this.#moved();
  }

  #fit() {
    this.viewport.fit();
    this.#moved();
  }

  #follow(on) {
    this.viewport.isFollowing = on;
    this.#moved();
  }

  #moved() {
    this.#clearHover();
    this.#requestDraw();
  }

  #wheel(event, x) {
    if (event.shiftKey || x < this.gutter) {
      this.scroller.scrollTop += event.deltaY || event.deltaX;
      this.#clearHover();
      return true;
    }
    if (Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return false;
    this.viewport.pan(event.deltaX);
    this.#moved();
    return true;
  }

  #at(x, y) {
    const row = Math.floor((y - AXIS_HEIGHT + this.scroller.scrollTop) / this.rowHeight);
    const lane = y > AXIS_HEIGHT && x > this.gutter ? this.lanes[row] : undefined;
    if (!lane) return { execution: null, number: 0 };
    const time = this.viewport.time(x - this.gutter);
    const found = findAt(lane, time, (POINTER_TOLERANCE * this.viewport.span) / this.viewport.width);
    const running = this.running.get(lane.worker);
    if (!found.execution && running && time >= running.start && time <= this.model.lastMessageTime) return { execution: running, number: 1, lane };
    return { ...found, lane };
  }

  #clearHover() {
    this.hovered = null;
    this.tooltip.hide();
  }

  #hover(x, y, event) {
    const found = this.#at(x, y);
    const { execution, number } = found;
    const isNarrow = execution && execution.duration < (POINTER_TOLERANCE * this.viewport.span) / this.viewport.width;
    this.#clearHover();
    if (!execution) return;
    this.hovered = found;
    this.tooltip.show(execution, isNarrow ? number - 1 : 0, event.clientX, event.clientY);
  }

  /** Open the task in the tooltip. The bar under the pointer may have become another task's meanwhile. */
  #tap(x, y) {
    const { execution, lane } = this.hovered ?? this.#at(x, y);
    if (!execution) return;
    this.selected = { lane, execution };
    this.#requestDraw();
    this.open(execution);
  }

  /** Handle a key, also when the canvas has no focus. Returns whether it was a key of the timeline. */
  handleKey(event) {
    return this.#handleKey(event);
  }

  #handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const acts = {
      ArrowLeft: () => this.viewport.pan(-KEY_PAN_PIXELS),
      ArrowRight: () => this.viewport.pan(KEY_PAN_PIXELS),
      ArrowUp: () => this.#chooseLane(-1),
      ArrowDown: () => this.#chooseLane(1),
      ",": () => this.#chooseTask(-1),
      ".": () => this.#chooseTask(1),
      "+": () => this.viewport.zoom(1.6),
      "=": () => this.viewport.zoom(1.6),
      "-": () => this.viewport.zoom(1 / 1.6),
      0: () => this.viewport.fit(),
      Home: () => this.viewport.fit(),
      " ": () => (this.viewport.isFollowing = !this.viewport.isFollowing),
      Enter: () => this.selected?.execution && this.open(this.selected.execution),
    };
    const act = acts[event.key];
    if (!act) return false;
    event.preventDefault();
    event.stopPropagation();
    act();
    if (event.key !== "," && event.key !== ".") this.#clearHover();
    this.#requestDraw();
    return true;
  }

  #chooseLane(step) {
    if (!this.lanes.length) return;
    const now = this.lanes.indexOf(this.selected?.lane);
    const row = Math.max(0, Math.min(this.lanes.length - 1, now < 0 ? 0 : now + step));
    this.selected = { lane: this.lanes[row], execution: null };
    this.#revealRow(row);
    this.tooltip.announce(`${visible(this.lanes[row].name)}, ${count(this.lanes[row].length)} tasks`);
  }

  #revealRow(row) {
    const [top, seen] = [row * this.rowHeight, this.scroller.clientHeight - AXIS_HEIGHT];
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > this.scroller.scrollTop + seen) this.scroller.scrollTop = top + this.rowHeight - seen;
  }

  #chooseTask(step) {
    if (!this.selected) this.#chooseLane(1);
    const lane = this.lanes.find((each) => each === this.selected?.lane);
    if (!lane?.executions.length) return;
    const { executions } = lane;
    const before = executions.indexOf(this.selected.execution);
    const at = before < 0 ? executions.length - 1 : before + step;
    const execution = executions[Math.max(0, Math.min(executions.length - 1, at))];
    this.selected = { lane, execution };
    this.hovered = null;
    this.viewport.reveal(execution.start, execution.end);
    const box = this.canvas.getBoundingClientRect();
    const x = Math.max(0, Math.min(this.viewport.width, this.viewport.x(execution.start)));
    const y = AXIS_HEIGHT + (this.lanes.indexOf(lane) + 1) * this.rowHeight - this.scroller.scrollTop;
    this.tooltip.show(execution, 0, box.left + this.gutter + x, box.top + y);
    this.tooltip.announce([visible(execution.name), execution.outcome.name, duration(execution.duration), visible(execution.error)].filter(Boolean).join(", "));
  }
}

/** Connected workers come first, and those without a known name last. */
function rankOf(lane) {
  return lane.isConnected ? 0 : lane.isNamed ? 1 : 2;
}

function legendItem(text, title, kind, colour) {
  const mark = element("i", { class: kind });
  if (colour) mark.style.background = colour;
  return element("li", { title }, ...(kind || colour ? [mark] : []), element("span", { text }));
}
