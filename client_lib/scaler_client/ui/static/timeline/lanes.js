// Lanes of the timeline: one for each worker's name, across restarts of the worker.

/** In milliseconds. Two processes with one name that overlap by more are two workers, and get two lanes. */
const MAX_OVERLAP = 200;

/** The executions of all processes with one name, by start. `longest` limits how early a visible one may begin. */
export class Lane {
  constructor(name) {
    this.name = name;
    this.executions = [];
    /** {worker, from, to} of each process that had the name, the first one first. */
    this.processes = [];
    this.stale = 0;
    this.longest = 0;
  }

  get key() {
    return this.processes[0]?.worker ?? this.name;
  }

  /** The process that has the name now, or had it last. */
  get worker() {
    return this.processes.at(-1)?.worker ?? "";
  }

  /** The times when another process took over the name. */
  get restarts() {
    return this.processes.slice(1).map((process) => process.from);
  }

  has(worker) {
    return this.processes.some((process) => process.worker === worker);
  }

  add(execution) {
    const all = this.executions;
    let at = all.length;
    while (at > 0 && all[at - 1].start > execution.start) at--;
    if (at === all.length) all.push(execution);
    else all.splice(at, 0, execution);
    this.longest = Math.max(this.longest, execution.duration);
    this.#recordProcess(execution.worker, execution.start, execution.end);
  }

  /** Add a process that has run nothing yet. */
  begin(worker, now) {
    this.#recordProcess(worker, now, now);
  }

  /** Count an execution that left the window; those numbered below `below` are dropped together, from time to time. */
  drop(below) {
    this.stale++;
    if (this.stale < 64 || this.stale * 2 < this.executions.length) return;
    this.executions = this.executions.filter((each) => each.number >= below);
    const earliest = this.executions[0]?.start ?? Infinity;
    this.processes = this.processes.filter((process, at) => process.to >= earliest || at === this.processes.length - 1);
    this.stale = 0;
  }

  get length() {
    return this.executions.length - this.stale;
  }

  /** The index of the first execution that may reach past `from`. */
  firstAfter(from) {
    let [low, high] = [0, this.executions.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.executions[middle].start + this.longest < from) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether another process may have had the name from this time on. */
  isFreeFrom(start) {
    return this.processes.every((process) => process.to - MAX_OVERLAP <= start);
  }

  /** Whether another process may have had the name until this time. */
  isFreeUntil(end) {
    return this.processes.every((process) => process.from + MAX_OVERLAP >= end);
  }

  #recordProcess(worker, from, to) {
    const process = this.processes.find((each) => each.worker === worker);
    if (process) {
      process.from = Math.min(process.from, from);
      process.to = Math.max(process.to, to);
      return;
    }
    let at = this.processes.length;
    while (at > 0 && this.processes[at - 1].from > from) at--;
    this.processes.splice(at, 0, { worker, from, to });
  }
}

export class Lanes {
  constructor() {
    this.all = new Set();
    this.byWorker = new Map();
    this.byName = new Map();
  }

  of(worker) {
    return this.byWorker.get(worker);
  }

  values() {
    return this.all.values();
  }

  add(execution) {
    let lane = this.byWorker.get(execution.worker);
    if (!lane) lane = this.#join(execution.worker, execution.workerName, (each) => each.isFreeFrom(execution.start) || each.isFreeUntil(execution.end));
    lane.add(execution);
  }

  /** The lanes, with those of connected workers that have run nothing. @param now when the workers were published */
  includeWorkers(workers, now) {
    const there = new Set(workers.map((row) => row.id));
    const isHeld = (lane) => lane.processes.some((process) => there.has(process.worker));
    for (const row of workers) {
      if (!this.byWorker.has(row.id)) this.#join(row.id, row.name, (lane) => !isHeld(lane)).begin(row.id, now);
    }
    for (const lane of this.all) {
      lane.isConnected = isHeld(lane);
      if (!lane.length && !lane.isConnected) this.#delete(lane);
    }
    return [...this.all];
  }

  forget(execution) {
    const lane = this.byWorker.get(execution.worker);
    if (!lane) return;
    lane.drop(execution.number + 1);
    if (!lane.length) this.#delete(lane);
  }

  #join(worker, name, accepts) {
    const called = name || `worker ${worker}`;
    const others = this.byName.get(called) ?? [];
    let lane = others.find(accepts);
    if (!lane) {
      lane = new Lane(called);
      lane.isNamed = Boolean(name);
      this.all.add(lane);
      this.byName.set(called, [...others, lane]);
    }
    this.byWorker.set(worker, lane);
    return lane;
  }

  #delete(lane) {
    this.all.delete(lane);
    for (const [worker, each] of this.byWorker) if (each === lane) this.byWorker.delete(worker);
    const left = this.byName.get(lane.name).filter((each) => each !== lane);
    if (left.length) this.byName.set(lane.name, left);
    else this.byName.delete(lane.name);
  }
}
