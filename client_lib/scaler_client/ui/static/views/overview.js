// The overview: the scheduler, its present state, and charts over the window.

import { Chart } from "../charts.js";
import { element, setClass, setText, setTitle } from "../elements.js";
import { bytes, count, day, duration, percent, rate, visible } from "../format.js";

export const overview = {
  id: "overview",
  title: "Overview",
  icon: "M3 11l7-7 7 7M5 9.5V16h4v-4h2v4h4V9.5",
  topics: ["series"],
  create: (context) => new Overview(context),
};

/** Id, title, and functions of the snapshot and the number of failed tasks: for the figure and the text below it. */
const FIGURES = [
  ["throughput", "Throughput", (snapshot) => rate(snapshot.tasks.resolved_rate), (snapshot) => `${count(snapshot.tasks.resolved)} done in all`],
  ["waiting", "Waiting", (snapshot) => count(snapshot.tasks.waiting), (snapshot) => `${count(snapshot.tasks.blocked)} blocked by inputs`],
  ["running", "Running", (snapshot) => count(snapshot.tasks.running), (snapshot) => `${count(snapshot.tasks.queued)} queued at workers`],
  ["suspended", "Suspended", (snapshot) => count(snapshot.tasks.suspended), () => "waiting for child tasks"],
  ["failed", "Failed", (_snapshot, failed) => count(failed), (snapshot, failed) => shareOf(failed, snapshot)],
  ["workers", "Workers", (snapshot) => count(snapshot.peers.workers), (snapshot) => `${plural(snapshot.peers.agents, "host agent")}, ${plural(snapshot.peers.clients, "client")}`],
  ["loop", "Scheduler loop", (snapshot) => percent(snapshot.process.loop), (snapshot) => `busy; ${percent(snapshot.process.cpu)} of a core`],
  ["memory", "Scheduler memory", (snapshot) => bytes(snapshot.process.rss), (snapshot) => `holds ${bytes(snapshot.memory.tasks + snapshot.memory.objects)} of ${bytes(snapshot.memory.limit)}`],
  ["values", "Values on hosts", (snapshot) => bytes(snapshot.values.memory), (snapshot) => `in memory; ${bytes(snapshot.values.disk)} on disk, ${bytes(snapshot.values.coming)} between hosts`],
];

const MIN_WINDOW = 30;

function failedOf(snapshot, hello) {
  const kinds = new Map(hello?.outcomes.map(([, name, kind]) => [name, kind]));
  return snapshot.outcomes.reduce((sum, [name, total]) => sum + (kinds.get(name) === "failed" ? total : 0), 0);
}

function shareOf(failed, snapshot) {
  const all = snapshot.outcomes.reduce((sum, [, total]) => sum + total, 0);
  return all ? `${percent((100 * failed) / all)} of all results` : "no results yet";
}

function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

class Overview {
  constructor({ model, theme }) {
    this.model = model;
    this.figures = new Map();
    const figures = element("section", { class: "figures", "aria-label": "Figures" }, ...FIGURES.map((each) => this.#figure(...each)));
    this.charts = [
      new Chart(theme, "Throughput", [
        { column: "throughput", name: "Done", colour: "series-1", fill: true },
        { column: "failed", name: "Failed", colour: "series-2", dash: [5, 3] },
      ], rate),
      new Chart(theme, "Tasks by state", [
        { column: "waiting", name: "Waiting", colour: "series-3", fill: true },
        { column: "blocked", name: "Blocked", colour: "series-5", dash: [5, 3] },
        { column: "queued", name: "Queued", colour: "series-1", dash: [2, 2] },
        { column: "running", name: "Running", colour: "series-4" },
      ], count, { least: 4 }),
      new Chart(theme, "Memory", [
        { column: "memory", name: "Scheduler", colour: "series-1", fill: true },
        { column: "worker_memory", name: "Workers", colour: "series-3", dash: [5, 3] },
      ], bytes, { least: 1 << 20, binary: true }),
      new Chart(theme, "Scheduler load", [
        { column: "loop", name: "Loop", colour: "series-1", fill: true },
        { column: "cpu", name: "Processor", colour: "series-3", dash: [5, 3] },
      ], percent, { least: 10 }),
    ];
    this.problems = new Problems();
    this.lists = ["Scheduler", "Outcomes", "Load", "Pools of hosts", "Shares", "Limits of tasks"].map((title) => new Facts(title));
    this.lists[3].element.hidden = true;
    this.element = element(
      "section",
      { class: "panel" },
      element("header", {}, element("h1", { text: "Overview" })),
      this.problems.element,
      figures,
      element("div", { class: "charts" }, ...this.charts.map((chart) => chart.element)),
      element("div", { class: "sides" }, ...this.lists.map((list) => list.element)),
    );
  }

  update() {
    const { snapshot, series, now, windowSeconds, hello } = this.model;
    const oldest = Math.min(series.columns.time[0] ?? 0, now / 1000 - MIN_WINDOW);
    const from = Math.max(now / 1000 - windowSeconds, oldest);
    for (const chart of this.charts) chart.update(series.columns, from, now / 1000);
    if (!snapshot) return;
    const failed = failedOf(snapshot, hello);
    for (const [id, , value, small] of FIGURES) {
      const { big, below } = this.figures.get(id);
      setText(big, value(snapshot, failed));
      setText(below, small(snapshot, failed));
      setTitle(below, small(snapshot, failed));
      if (id === "failed") setClass(big, failed ? "bad" : "");
    }
    this.lists[0].show(schedulerFacts(snapshot));
    this.lists[1].show(snapshot.outcomes.filter(([, total]) => total).map(([name, total]) => [name, count(total)]));
    this.lists[2].show(loadFacts(snapshot));
    this.lists[3].element.hidden = !snapshot.pools?.length;
    this.lists[3].show((snapshot.pools ?? []).map(poolFact));
    const shares = snapshot.shares ?? [];
    const used = shares.reduce((sum, share) => sum + share[4], 0);
    this.lists[4].element.hidden = shares.length < 2 && !shares.some((share) => share[5]);
    this.lists[4].show(shares.map((share) => shareFact(share, used)));
    this.lists[5].element.hidden = !snapshot.limits?.length;
    this.lists[5].show((snapshot.limits ?? []).map(limitFact));
    this.problems.show(snapshot.problems ?? []);
  }

  #figure(id, title) {
    const big = element("dd", { text: "–" });
    const below = element("dd", { class: "small", text: "" });
    this.figures.set(id, { big, below });
    return element("dl", { class: "card figure", "data-figure": id }, element("dt", { text: title }), big, below);
  }
}

function schedulerFacts(snapshot) {
  return [
    ["Address", visible(snapshot.address)],
    ["Host", visible(snapshot.host)],
    ["Process", String(snapshot.pid)],
    ["Version", visible(snapshot.version)],
    ["Interpreter", visible(snapshot.interpreter)],
    ["Started", day(snapshot.started * 1000).slice(0, 19)],
    ["Up for", duration(snapshot.uptime * 1000)],
  ];
}

function loadFacts(snapshot) {
  return [
    ["Dispatch, median", within(snapshot.dispatch_latencies, 0.5)],
    ["Dispatch, p99", within(snapshot.dispatch_latencies, 0.99)],
    ["Loop, mean turn", duration(snapshot.process.loop_mean * 1000)],
    ["Functions", count(snapshot.functions)],
    ["Objects", `${count(snapshot.objects)}, ${bytes(snapshot.memory.objects)}`],
    ["Open tasks' payload", bytes(snapshot.memory.tasks)],
    ["Tasks dispatched again", count(snapshot.retries)],
  ];
}

function poolFact([name, wanted, booting, there, draining, failed, isResting, problem]) {
  const parts = [`${count(there)} there`, `${count(wanted)} wanted`, `${count(booting)} booting`, `${count(draining)} draining`];
  if (failed) parts.push(`${count(failed)} failed`);
  if (isResting) parts.push("resting");
  else if (problem) parts.push("failing");
  return [visible(name), parts.join(", ")];
}

/** A share; `used` is the time that all shares have used, in seconds. */
function shareFact([name, weight, running, waiting, usedSeconds, maxRunning], used) {
  const parts = [`${count(running)} running${maxRunning ? ` (at most ${count(maxRunning)})` : ""}`, `${count(waiting)} waiting`];
  if (used) parts.push(`${percent((100 * usedSeconds) / used)} of the time`);
  if (weight !== 1) parts.push(`weight ${weight}`);
  return [visible(name), parts.join(", ")];
}

function limitFact([name, most, perSecond, running, waiting]) {
  const bound = most ? `at most ${count(most)}` : `${perSecond} begin in a second`;
  return [visible(name), `${count(running)} running, ${count(waiting)} waiting (${bound})`];
}

/** The duration that this share of the counts stayed below. The counts are by powers of two of microseconds. */
function within(counts, share) {
  const all = counts.reduce((sum, number) => sum + number, 0);
  let left = all * share;
  for (let power = 0; power < counts.length && all; power++) {
    left -= counts[power];
    if (left <= 0) return `≤ ${duration(2 ** power / 1000)}`;
  }
  return "–";
}

/** The problems, one line each, as in `scaler_client status`. */
class Problems {
  constructor() {
    this.list = element("ul");
    this.element = element("section", { class: "card problems", "aria-label": "Problems", role: "status", hidden: true }, element("h2", { text: "Problems" }), this.list);
  }

  show(problems) {
    const said = problems.join("\n");
    this.element.hidden = !problems.length;
    if (said === this.said) return;
    this.said = said;
    this.list.replaceChildren(...problems.map((text) => element("li", { text: visible(text) })));
  }
}

/** A list of names and values. Only changed values are updated. */
class Facts {
  constructor(title) {
    this.list = element("dl", { class: "facts" });
    this.lines = new Map();
    this.element = element("section", { class: "card" }, element("h2", { text: title }), this.list);
  }

  show(facts) {
    const names = facts.map(([name]) => name).join("\n");
    if (names !== this.names) {
      this.names = names;
      this.lines = new Map(facts.map(([name]) => [name, element("dd")]));
      this.list.replaceChildren(...facts.flatMap(([name]) => [element("dt", { text: name }), this.lines.get(name)]));
      if (!facts.length) this.list.append(element("dt", { text: "None yet" }));
    }
    for (const [name, value] of facts) setText(this.lines.get(name), value);
  }
}
