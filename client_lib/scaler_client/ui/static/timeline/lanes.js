// A lane for each worker's name: what it ran, through all of its restarts.

/** In milliseconds: two lives of one name that overlap by more are two workers that share a name. */
const MAX_OVERLAP = 200;

/** What the workers of one name ran, one after the other: executions by their start. `longest` bounds how far back one in sight may begin. */
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

  /** When the name went over to another process. */
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

  /** A process is there that has run nothing yet. */
  begin(worker, now) {
    this.#recordProcess(worker, now, now);
  }

  /** One of those numbered below is of the window no more. They stand anywhere, and leave many at a time. */
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

  /** The place of the first that may reach into the time after `from`. */
  firstAfter(from) {
    let [low, high] = [0, this.executions.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.executions[middle].start + this.longest < from) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether another process could have had the name from then on. */
  isFreeFrom(start) {
    return this.processes.every((process) => process.to - MAX_OVERLAP <= start);
  }

  /** Whether another process could have had the name up to then. */
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

  /** The lanes of workers that are there, also of those that have run nothing. @param now when these were told of */
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
