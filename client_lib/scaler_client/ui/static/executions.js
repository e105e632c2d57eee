// The executions in the window, newest last, and by worker for the timeline.

import { FunctionColours } from "./function_colours.js";
import { Lanes } from "./timeline/lanes.js";

export const MAX_EXECUTIONS = 100_000;

/** One ended attempt of a task. Times are milliseconds of unix time. NaN means not known, or never ran. */
class Execution {
  constructor(number, chunk, columns, row, context) {
    this.number = number;
    this.id = columns.id[row];
    this.client = chunk.clients[columns.client[row]];
    this.clientName = chunk.client_names[columns.client[row]];
    this.attempt = columns.attempt[row];
    const worker = columns.worker[row];
    this.worker = worker < 0 ? "" : chunk.workers[worker];
    this.workerName = worker < 0 ? "" : chunk.worker_names[worker];
    /** The worker as shown. If it left before the server could learn its name, its identity is shown. */
    this.workerLabel = this.workerName || (this.worker && `worker ${this.worker}`);
    this.function = context.functions[columns.function[row]];
    this.name = chunk.names[columns.name[row]];
    this.submitted = milliseconds(context.base, columns.submitted[row]);
    this.start = milliseconds(context.base, columns.start[row]);
    this.end = context.base + columns.end[row] / 1000;
    this.outcome = context.outcomes.get(columns.outcome[row]);
    this.error = columns.error[row] < 0 ? "" : chunk.errors[columns.error[row]];
  }

  get duration() {
    return this.end - this.start;
  }

  get failed() {
    return this.outcome.kind === "failed";
  }
}

function milliseconds(base, microseconds) {
  return microseconds === null ? NaN : base + microseconds / 1000;
}

/** All good outcomes are shown as "done": how a result is kept does not matter to users. */
function shownNameOf(name, kind) {
  return kind === "good" ? "done" : name;
}

const UNKNOWN = { name: "unknown", kind: "neutral" };

class Outcomes {
  constructor() {
    this.known = new Map();
  }

  set(rows) {
    this.known = new Map(rows.map(([number, name, kind]) => [number, { name: shownNameOf(name, kind), kind }]));
  }

  get(number) {
    return this.known.get(number) ?? UNKNOWN;
  }
}

/** Limits the functions added for running tasks, so that tasks with own names do not fill the table. */
const MAX_FROM_RUNNING = 64;

/** All functions seen so far, numbered in this order. */
class Functions {
  constructor(colours) {
    this.colours = colours;
    this.all = [];
    this.numbers = new Map();
  }

  /** The function of a running task. Only the task's name is known, which is usually its function's. */
  ofRunning(name) {
    const number = this.numbers.get(name);
    if (number !== undefined) return this.all[number];
    return this.all.length < MAX_FROM_RUNNING ? this.named(name) : { number: -1, colour: -1, name };
  }

  named(name) {
    let number = this.numbers.get(name);
    if (number === undefined) {
      number = this.all.length;
      this.numbers.set(name, number);
      this.all.push({ number, name, colour: this.colours.indexOf(name), executions: 0, failed: 0 });
    }
    return this.all[number];
  }
}

export class Executions {
  constructor(most = MAX_EXECUTIONS, colours = new FunctionColours()) {
    this.most = most;
    this.outcomes = new Outcomes();
    this.functions = new Functions(colours);
    this.clear();
  }

  clear() {
    this.all = [];
    this.dropped = 0;
    this.next = 0;
    this.lanes = new Lanes();
    this.missed = 0;
    this.earliest = Infinity;
    for (const each of this.functions.all) each.executions = each.failed = 0;
  }

  get length() {
    return this.all.length - this.dropped;
  }

  /** The n-th newest execution. */
  newest(n) {
    return this.all[this.all.length - 1 - n];
  }

  oldestFirst() {
    return this.all.slice(this.dropped);
  }

  /** Add a message `tasks` of the contract. */
  addChunk(chunk) {
    const context = {
      base: chunk.base * 1000,
      functions: this.#functionsOf(chunk),
      outcomes: this.outcomes,
    };
    this.missed += chunk.missed;
    for (let row = 0; row < chunk.columns.id.length; row++) this.#add(new Execution(this.next++, chunk, chunk.columns, row, context));
  }

  /** Drop executions that ended before `before`, and the oldest ones beyond the limit. */
  trim(before) {
    const { all } = this;
    while (this.dropped < all.length && (all[this.dropped].end < before || this.length > this.most)) {
      this.#forget(all[this.dropped++]);
    }
    if (this.dropped > 1024 && this.dropped * 2 > all.length) {
      this.all = all.slice(this.dropped);
      this.dropped = 0;
    }
  }

  /** All known attempts of a task, the first one first. */
  attemptsOf(client, id) {
    return this.oldestFirst().filter((each) => each.id === id && each.client === client);
  }

  /** The newest executions that match, at most `most`. */
  newestMatching(isMatch, most) {
    const found = [];
    for (let n = 0; n < this.length && found.length < most; n++) {
      const each = this.newest(n);
      if (isMatch(each)) found.push(each);
    }
    return found;
  }

  /** Functions by index into the chunk's names. Most of these names may belong to single tasks. */
  #functionsOf(chunk) {
    const found = [];
    for (const index of new Set(chunk.columns.function)) found[index] = this.functions.named(chunk.names[index]);
    return found;
  }

  #forget(execution) {
    execution.function.executions--;
    execution.function.failed -= execution.failed;
    if (!Number.isNaN(execution.start)) this.lanes.forget(execution);
  }

  #add(execution) {
    this.all.push(execution);
    execution.function.executions++;
    execution.function.failed += execution.failed;
    if (execution.start < this.earliest) this.earliest = execution.start;
    if (execution.worker && !Number.isNaN(execution.start)) this.lanes.add(execution);
  }
}
