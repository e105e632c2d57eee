// Paints the timeline: axis, names of workers, bars. All it paints is passed in with each call.

import { clock, cut, visible } from "../format.js";
import { Frame, LEVELS, layoutLane } from "./lane_layout.js";
import { ticks } from "./viewport.js";

export const AXIS_HEIGHT = 28;
const MIN_HEIGHT_FOR_TEXT = 14;
const MIN_TEXT_WIDTH = 44;
const MAX_TEXTS = 300;
const CHARACTER_WIDTH = 6.02;
const NAME_FONT = "12px system-ui, 'DejaVu Sans', sans-serif";

export class Painter {
  constructor(canvas, theme) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.theme = theme;
    theme.onChange(() => (this.colours = null));
  }

  resize(width, height) {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (this.width === width && this.height === height && this.ratio === ratio) return;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  /**
   * @param scene {lanes, running (Map of worker -> task), viewport, gutter, rowHeight, scrollTop, until, selected
   * {lane, execution}}
   * @returns how much was painted: {bars, rows, scanned}
   */
  paint(scene) {
    this.colours ??= this.#readColours();
    const { context, colours } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = colours.surface;
    context.fillRect(0, 0, this.width, this.height);
    const { lanes, rowHeight, scrollTop, gutter, viewport } = scene;
    const first = Math.max(0, Math.floor(scrollTop / rowHeight));
    const last = Math.min(lanes.length, Math.ceil((scrollTop + this.height - AXIS_HEIGHT) / rowHeight));
    const top = AXIS_HEIGHT - scrollTop;
    const pad = rowHeight >= 14 ? 2 : rowHeight >= 6 ? 1 : 0;
    this.#rows(scene, first, last, top);
    const axis = ticks(viewport, 84);
    this.#grid(axis, scene);
    context.save();
    context.beginPath();
    context.rect(gutter, AXIS_HEIGHT, viewport.width, this.height - AXIS_HEIGHT);
    context.clip();
    context.translate(gutter, 0);
    const frame = new Frame();
    for (let row = first; row < last; row++) layoutLane(frame, lanes[row], viewport, top + row * rowHeight + pad, rowHeight - 2 * pad);
    this.#bars(frame, rowHeight);
    for (let row = first; row < last; row++) {
      const task = scene.running.get(lanes[row].worker);
      if (task) this.#open(frame, task, scene, top + row * rowHeight + pad, rowHeight - 2 * pad);
    }
    this.#failures(frame);
    for (let row = first; row < last; row++) this.#restarts(lanes[row], viewport, top + row * rowHeight, rowHeight);
    if (scene.selected) this.#choice(scene, top, pad);
    context.restore();
    this.#names(scene, first, last, top);
    this.#axis(axis, scene);
    return { bars: frame.drawn, rows: Math.max(0, last - first), scanned: frame.scanned };
  }

  #readColours() {
    const names = ["surface", "sunk", "text", "muted", "faint", "line", "accent", "accent-soft", "bad"];
    const colours = Object.fromEntries(names.map((name) => [name, this.theme.colour(name)]));
    colours.hatch = this.context.createPattern(hatching(colours.bad, colours.surface), "repeat");
    return colours;
  }

  #rows({ lanes, rowHeight, selected }, first, last, top) {
    const { context, colours } = this;
    context.fillStyle = colours.sunk;
    for (let row = first; row < last; row++) if (row % 2) context.fillRect(0, top + row * rowHeight, this.width, rowHeight);
    if (!selected) return;
    context.fillStyle = colours["accent-soft"];
    const row = lanes.indexOf(selected.lane);
    if (row >= first && row < last) context.fillRect(0, top + row * rowHeight, this.width, rowHeight);
  }

  #grid({ times }, { viewport, gutter }) {
    this.context.fillStyle = this.colours.line;
    for (const time of times) this.context.fillRect(Math.round(gutter + viewport.x(time)), AXIS_HEIGHT, 1, this.height);
  }

  #bars(frame, rowHeight) {
    const { context, theme } = this;
    for (const [key, list] of frame.bars) {
      context.fillStyle = theme.functionColour(Math.floor(key / LEVELS));
      context.globalAlpha = 0.34 + (0.66 * ((key % LEVELS) + 1)) / LEVELS;
      for (let n = 0; n < list.length; n += 4) context.fillRect(list[n], list[n + 1], list[n + 2], list[n + 3]);
    }
    context.globalAlpha = 1;
    const { wide } = frame;
    const named = [];
    for (let n = 0; n < wide.length; n += 5) {
      const width = wide[n + 3];
      context.fillStyle = theme.functionColour(wide[n].function.colour);
      context.fillRect(wide[n + 1], wide[n + 2], width - (width > 4 ? 1 : 0), wide[n + 4]);
      if (width >= MIN_TEXT_WIDTH && !wide[n].failed) named.push(n);
    }
    // Text costs the most. If there are many bars, their texts would be too small to read.
    if (rowHeight < MIN_HEIGHT_FOR_TEXT || named.length > MAX_TEXTS) return;
    for (const n of named) this.#text(wide[n], wide[n + 1], wide[n + 2], wide[n + 3], wide[n + 4]);
  }

  #text({ name, function: kind }, x, y, width, height) {
    const { context } = this;
    context.fillStyle = textColourOn(this.theme.functionColour(kind.colour));
    context.font = "10px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText(cut(name, Math.floor((width - 8) / CHARACTER_WIDTH)), x + 4, y + height / 2 + 0.5);
  }

  /** A running task: its bar is open at the end. */
  #open(frame, task, { viewport, until }, y, height) {
    const { context, theme } = this;
    const x = Math.max(-2, viewport.x(task.start));
    const end = Math.min(viewport.width + 2, viewport.x(until));
    if (end <= 0 || x >= viewport.width || end - x < 0.5) return;
    context.fillStyle = theme.functionColour(task.function.colour);
    context.globalAlpha = 0.45;
    context.fillRect(x, y, end - x, height);
    context.globalAlpha = 1;
    context.fillRect(x, y, Math.min(2, end - x), height);
    for (let dash = 0; dash < height; dash += 4) context.fillRect(end - 1.5, y + dash, 1.5, 2);
    frame.drawn++;
  }

  /**
   * Failed executions are hatched in red, with a cross if there is room. Narrow ones are a red line with an arrow
   * head.
   */
  #failures(frame) {
    const { context, colours } = this;
    const { failures, marks } = frame;
    context.strokeStyle = colours.bad;
    for (let n = 0; n < failures.length; n += 4) {
      const [x, y, width, height] = failures.slice(n, n + 4);
      context.fillStyle = colours.hatch;
      context.fillRect(x, y, width, height);
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.75, y + 0.75, Math.max(0.5, width - 1.5), height - 1.5);
      if (width >= 14 && height >= 10) this.#cross(x + width / 2, y + height / 2);
    }
    context.fillStyle = colours.bad;
    for (let n = 0; n < marks.length; n += 3) {
      const [x, y, height] = [marks[n], marks[n + 1], marks[n + 2]];
      context.fillRect(x - 0.75, y, 2, height);
      context.beginPath();
      context.moveTo(x - 3, y - 1);
      context.lineTo(x + 3.5, y - 1);
      context.lineTo(x + 0.25, y + Math.min(5, height / 2));
      context.fill();
    }
  }

  /** Marks where another process took over the worker's name. */
  #restarts(lane, viewport, y, height) {
    const { context, colours } = this;
    for (const time of lane.restarts) {
      const x = viewport.x(time);
      if (x < -8 || x > viewport.width) continue;
      context.fillStyle = colours.surface;
      context.fillRect(x - 3, y, 4, height);
      context.fillStyle = colours.text;
      context.fillRect(x - 2, y, 2, height);
      context.beginPath();
      context.moveTo(x - 2, y);
      context.lineTo(x + 6, y + Math.min(5, height / 2));
      context.lineTo(x - 2, y + Math.min(10, height));
      context.fill();
    }
  }

  #cross(x, y) {
    const { context, colours } = this;
    context.fillStyle = colours.surface;
    context.fillRect(x - 5, y - 5, 10, 10);
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x - 3, y - 3);
    context.lineTo(x + 3, y + 3);
    context.moveTo(x + 3, y - 3);
    context.lineTo(x - 3, y + 3);
    context.stroke();
  }

  #choice({ lanes, selected, viewport, rowHeight }, top, pad) {
    const { execution, lane } = selected;
    const row = lanes.indexOf(lane);
    if (!execution || row < 0) return;
    const { context, colours } = this;
    const x = viewport.x(execution.start);
    const end = viewport.x(Number.isNaN(execution.end) ? viewport.to : execution.end);
    context.strokeStyle = colours.text;
    context.lineWidth = 2;
    context.strokeRect(x - 1, top + row * rowHeight + pad - 1, Math.max(3, end - x + 1), rowHeight - 2 * pad + 2);
  }

  /** The width of the longest name in pixels, within these bounds. */
  gutterFor(lanes, least, most) {
    this.context.font = NAME_FONT;
    const longest = lanes.reduce((found, lane) => (lane.name.length > found.length ? lane.name : found), "");
    return Math.round(Math.max(least, Math.min(most, this.context.measureText(visible(longest)).width + 30)));
  }

  #names({ lanes, rowHeight, gutter }, first, last, top) {
    const { context, colours } = this;
    context.fillStyle = colours.line;
    context.fillRect(gutter - 1, 0, 1, this.height);
    const each = Math.max(1, Math.ceil(13 / rowHeight));
    context.font = NAME_FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const letters = Math.max(4, Math.floor((gutter - 18) / 6.4));
    for (let row = first; row < last; row++) {
      if (row % each) continue;
      context.fillStyle = lanes[row].isConnected ? colours.text : colours.faint;
      context.fillText(cut(lanes[row].name, letters), 12, top + row * rowHeight + (rowHeight * each) / 2 + 0.5, gutter - 18);
    }
  }

  #axis({ times, step }, { viewport, gutter }) {
    const { context, colours } = this;
    context.fillStyle = colours.sunk;
    context.fillRect(0, 0, this.width, AXIS_HEIGHT - 1);
    context.fillStyle = colours.line;
    context.fillRect(0, AXIS_HEIGHT - 1, this.width, 1);
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillStyle = colours.muted;
    for (const time of times) {
      const x = gutter + viewport.x(time);
      if (x > gutter + 30 && x < this.width - 30) context.fillText(clock(time, step), x, AXIS_HEIGHT / 2);
    }
    context.textAlign = "left";
    context.fillText("Worker", 12, AXIS_HEIGHT / 2);
  }
}

function hatching(colour, surface) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const context = tile.getContext("2d");
  context.fillStyle = surface;
  context.globalAlpha = 0.55;
  context.fillRect(0, 0, 8, 8);
  context.globalAlpha = 1;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  for (const shift of [-8, 0, 8]) {
    context.beginPath();
    context.moveTo(shift - 1, 9);
    context.lineTo(shift + 9, -1);
    context.stroke();
  }
  return tile;
}

const TEXT_COLOURS = new Map();

/** Black or white, whichever is legible on a colour. */
function textColourOn(colour) {
  if (!TEXT_COLOURS.has(colour)) {
    const parts = [1, 3, 5].map((offset) => parseInt(colour.slice(offset, offset + 2), 16) / 255);
    const linear = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    TEXT_COLOURS.set(colour, light > 0.179 ? "#0b0f14" : "#ffffff");
  }
  return TEXT_COLOURS.get(colour);
}
