// A chart of some columns of the series over time, drawn by uPlot.

import { element, setText } from "./elements.js";
import { clock } from "./format.js";

const BINARY_STEPS = [];
for (let power = 0; power < 5; power++) for (let step = 1; step < 1024; step *= 2) BINARY_STEPS.push(step * 1024 ** power);

export class Chart {
  /**
   * @param title the title of the chart
   * @param lines each {column, name, colour (a name of the style sheet), fill}
   * @param format(value) formats values on the axis and in the legend
   * @param options.binary the axis has steps of powers of two
   */
  constructor(theme, title, lines, format, options = {}) {
    this.theme = theme;
    this.lines = lines;
    this.format = format;
    this.options = options;
    this.plot = null;
    this.holder = element("div", { class: "plot" });
    this.moment = element("span", { class: "note" });
    this.empty = element("p", { class: "empty", text: "Nothing in the window yet" });
    this.element = element(
      "section",
      { class: "card chart", "aria-label": `${title} over time` },
      element("header", {}, element("h2", { text: title }), this.moment),
      this.holder,
    );
    this.holder.append(this.empty);
    new ResizeObserver(() => this.#resize()).observe(this.holder);
    theme.onChange(() => this.#forget());
  }

  /** @param from, to the range of the axis, in seconds of unix time */
  update(columns, from, to) {
    const data = [columns.time, ...this.lines.map((line) => columns[line.column])];
    this.range = [from, to];
    this.empty.hidden = columns.time.length > 0;
    if (!this.plot) this.#make(data);
    else this.plot.setData(data);
    if (columns.time.length && this.plot.cursor.idx == null) this.plot.setLegend({ idx: columns.time.length - 1 });
    if (this.#legendHeight !== this.legendHeight) this.#resize();
  }

  #make(data) {
    this.plot = new window.uPlot(this.#settings(), data, this.holder);
    this.#resize();
  }

  #forget() {
    this.plot?.destroy();
    this.plot = null;
  }

  #resize() {
    const width = this.holder.clientWidth;
    if (!this.plot || !width) return;
    this.legendHeight = this.#legendHeight;
    this.plot.setSize({ width, height: this.holder.clientHeight - this.legendHeight });
  }

  get #legendHeight() {
    return this.plot.root.querySelector(".u-legend")?.offsetHeight ?? 0;
  }

  #showMoment(plot) {
    const time = plot.data[0][plot.legend.idx];
    setText(this.moment, time === undefined ? "" : clock(time * 1000));
  }

  #settings() {
    const { theme, format } = this;
    const grid = { stroke: theme.colour("line"), width: 1 };
    const axis = { stroke: theme.colour("muted"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    return {
      width: Math.max(100, this.holder.clientWidth),
      height: 160,
      padding: [8, 16, 0, 0],
      hooks: { setLegend: [(plot) => this.#showMoment(plot)] },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: true, range: () => this.range },
        y: { range: (_plot, _least, most) => [0, Math.max(this.options.least ?? 1, (most ?? 0) * 1.08)] },
      },
      axes: [
        { ...axis, space: 70, size: 24, values: (_plot, times, _axis, _space, step) => times.map((time) => (step < 60 ? clock(time * 1000) : clock(time * 1000).slice(0, 5))) },
        { ...axis, space: 34, size: 68, ...(this.options.binary ? { incrs: BINARY_STEPS } : {}), values: (_plot, values) => values.map(format) },
      ],
      series: [
        {},
        ...this.lines.map((line) => ({
          label: line.name,
          stroke: theme.colour(line.colour),
          width: 1.6,
          dash: line.dash,
          fill: line.fill ? `${theme.colour(line.colour)}22` : undefined,
          points: { show: false },
          value: (_plot, value) => (value == null ? "–" : format(value)),
        })),
      ],
    };
  }
}
