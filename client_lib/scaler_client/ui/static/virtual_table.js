// A table of any number of rows, of which only the visible ones are elements of the page.

import { element, setClass, setText, setTitle } from "./elements.js";

const ROW_HEIGHT = 30;
const SPARE_ROWS = 4;
let tables = 0;

/**
 * @param options.label the table's name
 * @param options.columns each {id, title, width (px), grow, right, value(row), text(row), full(row), style(row),
 * hint, first,
 *   from}: `value` is the sort key (a column without one cannot be sorted), `full` the title, `first` the direction
 *   of the
 *   first sort, and `from` the least width of the table (px) at which the column is shown
 * @param options.key(row) identifies a row
 * @param options.sort {column, direction} at first; without it, rows stay in the given order
 * @param options.onOpen(row) called on click and Enter
 * @param options.rowClass(row) a CSS class
 */
export class VirtualTable {
  constructor(options) {
    this.options = options;
    this.columns = options.columns.filter((column) => !column.from);
    this.sort = options.sort ?? null;
    this.rows = [];
    this.active = null;
    this.pool = [];
    this.name = `table${++tables}`;
    this.onScroll = options.onScroll ?? (() => {});
    this.#build();
    new ResizeObserver(() => this.#fit()).observe(this.element);
  }

  /** Show the columns that fit. */
  #fit() {
    const width = this.element.clientWidth;
    if (!width) return;
    const columns = this.options.columns.filter((column) => (column.from ?? 0) <= width);
    if (columns.length !== this.columns.length) {
      this.columns = columns;
      this.pool = [];
      this.body.replaceChildren();
      this.#head();
    }
    this.render();
  }

  /** Show these rows. */
  setRows(rows) {
    this.rows = this.sort ? this.#sorted(rows) : rows;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.body.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.render();
  }

  setEmpty(text) {
    setText(this.empty, text);
  }

  get scrolled() {
    return this.element.scrollTop > ROW_HEIGHT / 2;
  }

  scrollToTop() {
    this.element.scrollTop = 0;
  }

  /** Scroll by a number of rows that were inserted above. */
  shift(rows) {
    this.element.scrollTop += rows * ROW_HEIGHT;
  }

  render() {
    const height = this.element.clientHeight;
    this.empty.hidden = this.rows.length > 0;
    if (!height) return;
    const { scrollLeft, clientWidth, scrollWidth } = this.element;
    this.element.classList.toggle("more", scrollLeft + clientWidth < scrollWidth - 1);
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    const needed = Math.min(this.rows.length - first, Math.ceil(height / ROW_HEIGHT) + 2 * SPARE_ROWS);
    while (this.pool.length < needed) this.pool.push(this.#newRow());
    let active = "";
    for (let slot = 0; slot < this.pool.length; slot++) {
      const line = this.pool[slot];
      const row = slot < needed ? this.rows[first + slot] : undefined;
      line.hidden = row === undefined;
      line.row = row;
      if (row === undefined) continue;
      this.#fill(line, row, first + slot);
      if (line.isActive) active = line.id;
    }
    if (active) this.element.setAttribute("aria-activedescendant", active);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #head() {
    const least = this.columns.reduce((sum, column) => sum + column.width + 16, 0);
    const tracks = this.columns.map((column) =>
      column.grow ? `minmax(${column.width + 16}px, ${column.grow}fr)` : `${column.width + 16}px`,
    );
    this.headers = this.columns.map((column, at) => this.#header(column, at));
    this.head.replaceChildren(...this.headers);
    this.element.setAttribute("aria-colcount", String(this.columns.length));
    this.element.style.setProperty("--columns", tracks.join(" "));
    this.element.style.setProperty("--least", `${least}px`);
    this.#markSort();
  }

  #build() {
    this.head = element("div", { class: "row head", role: "row", "aria-rowindex": "1" });
    this.body = element("div", { class: "rows", role: "rowgroup" });
    this.empty = element("p", { class: "empty", text: this.options.empty ?? "Nothing yet" });
    this.element = element("div", {
      class: "table",
      role: "grid",
      tabindex: "0",
      "aria-label": this.options.label,
      "aria-rowcount": "1",
      "aria-readonly": "true",
    });
    this.element.append(element("div", { role: "rowgroup", class: "heads" }, this.head), this.body, this.empty);
    this.element.addEventListener("scroll", () => {
      this.render();
      this.onScroll();
    });
    this.element.addEventListener("keydown", (event) => event.target === this.element && this.handleKey(event));
    this.body.addEventListener("click", (event) => this.#click(event));
    this.#head();
  }

  #header(column, at) {
    const cell = element("div", {
      class: column.right ? "cell right" : "cell",
      role: "columnheader",
      "aria-colindex": String(at + 1),
      title: column.hint,
    });
    if (!column.value || !this.sort) {
      cell.append(element("span", { text: column.title }));
      return cell;
    }
    const button = element("button", { type: "button", class: "sorter" }, element("span", { text: column.title }));
    button.addEventListener("click", () => this.sortBy(column.id));
    cell.append(button);
    return cell;
  }

  sortBy(id) {
    const column = this.#column(id);
    const first = column.first ?? (column.right ? "descending" : "ascending");
    const other = first === "ascending" ? "descending" : "ascending";
    this.sort = { column: id, direction: this.sort.column === id && this.sort.direction === first ? other : first };
    this.#markSort();
    this.setRows(this.rows);
  }

  #column(id) {
    return this.options.columns.find((each) => each.id === id);
  }

  #markSort() {
    this.columns.forEach((column, at) => {
      if (!column.value || !this.sort) return;
      const sorted = this.sort.column === column.id;
      this.headers[at].setAttribute("aria-sort", sorted ? this.sort.direction : "none");
    });
  }

  #sorted(rows) {
    const column = this.#column(this.sort.column);
    const sign = this.sort.direction === "ascending" ? 1 : -1;
    const { key } = this.options;
    return [...rows].sort((left, right) => {
      const [a, b] = [column.value(left), column.value(right)];
      const order = typeof a === "string" ? NATURAL.compare(a, b) : a - b;
      return order ? sign * order : key(left) < key(right) ? -1 : 1;
    });
  }

  #newRow() {
    const line = element("div", { class: "row", role: "row", id: `${this.name}-${this.pool.length}` });
    line.cells = this.columns.map((column, at) =>
      element("div", { class: column.right ? "cell right" : "cell", role: "gridcell", "aria-colindex": String(at + 1) }),
    );
    line.append(...line.cells);
    this.body.append(line);
    return line;
  }

  #fill(line, row, index) {
    const top = index * ROW_HEIGHT;
    if (line.top !== top) {
      line.top = top;
      line.style.transform = `translateY(${top}px)`;
      line.setAttribute("aria-rowindex", String(index + 2));
    }
    line.isActive = this.options.key(row) === this.active;
    const own = this.options.rowClass?.(row) ?? "";
    setClass(line, `row${line.isActive ? " active" : ""}${this.options.onOpen ? " opens" : ""}${own ? ` ${own}` : ""}`);
    this.columns.forEach((column, at) => {
      const cell = line.cells[at];
      setText(cell, column.text(row));
      if (column.full) setTitle(cell, column.full(row));
      if (column.style) setClass(cell, `cell${column.right ? " right" : ""} ${column.style(row)}`);
    });
  }

  #click(event) {
    const line = event.target.closest(".row");
    if (!line?.row) return;
    this.active = this.options.key(line.row);
    this.render();
    this.options.onOpen?.(line.row);
  }

  /** Handle a key, also when the table has no focus. Returns whether it was a key of the table. */
  handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.#move(steps[event.key]);
    else if (event.key === "Enter" && this.active !== null) {
      const row = this.rows.find((each) => this.options.key(each) === this.active);
      if (row) this.options.onOpen?.(row);
    } else return false;
    event.preventDefault();
    return true;
  }

  #move(step) {
    if (!this.rows.length) return;
    const now = this.rows.findIndex((each) => this.options.key(each) === this.active);
    const shown = Math.ceil(this.element.scrollTop / ROW_HEIGHT);
    const to = now < 0 ? (Number.isFinite(step) ? shown : step) : now + step;
    const index = Math.max(0, Math.min(this.rows.length - 1, to));
    this.active = this.options.key(this.rows[index]);
    const [top, seen] = [index * ROW_HEIGHT, this.element.clientHeight - this.head.offsetHeight];
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT > this.element.scrollTop + seen) this.element.scrollTop = top + ROW_HEIGHT - seen;
    this.render();
  }
}

const NATURAL = new Intl.Collator("en", { numeric: true });
