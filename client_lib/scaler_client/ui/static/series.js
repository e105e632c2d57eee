// The data of the charts by column, with a point each second.

export const COLUMNS = [
  "time", "throughput", "failed", "waiting", "blocked", "queued", "running", "suspended", "workers", "clients",
  "memory", "worker_memory", "cpu", "loop",
];

export class Series {
  constructor() {
    this.clear();
  }

  clear() {
    this.columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  }

  get length() {
    return this.columns.time.length;
  }

  append(message) {
    const added = message.columns.time.length;
    for (const name of COLUMNS) {
      const values = message.columns[name] ?? new Array(added).fill(null);
      for (const value of values) this.columns[name].push(value);
    }
  }

  /** Drop points before a time (seconds of unix time). */
  trim(before) {
    const { time } = this.columns;
    let dropped = 0;
    while (dropped < time.length && time[dropped] < before) dropped++;
    if (dropped) for (const name of COLUMNS) this.columns[name].splice(0, dropped);
  }
}
