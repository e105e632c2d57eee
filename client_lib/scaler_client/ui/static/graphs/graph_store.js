// Open graphs over time. The scheduler forgets a node when it is no longer needed. Here it stays until its graph has
// ended, so that the whole graph is visible.

export const MAX_NODES = 5000;
const KEEP_ENDED_MILLISECONDS = 10_000;
const ENDED_STATES = ["done", "failed"];
export const STATES = ["blocked", "waiting", "running", "done", "failed"];

export class GraphStore {
  constructor() {
    this.nodes = new Map();
    this.total = 0;
    this.processedUntil = 0;
  }

  /** Apply a message `graphs` of the contract, which came at `now` (milliseconds of any clock). */
  apply(message, now) {
    const { columns, edges } = message;
    this.total = message.total;
    for (const node of this.nodes.values()) node.isOpen = node.isPublished = false;
    const rows = columns.id.map((id, row) => {
      const key = `${columns.client[row]} ${id}`;
      let node = this.nodes.get(key);
      if (!node) this.nodes.set(key, (node = { key, id, client: columns.client[row], inputs: new Set(), outcome: "", graph: "", keys: "", begun: null }));
      const state = columns.state[row];
      Object.assign(node, { name: columns.name[row], state, isPublished: true, isOpen: !ENDED_STATES.includes(state), seenAt: now });
      if (columns.graph?.[row]) Object.assign(node, { graph: columns.graph[row], keys: columns.keys[row], begun: columns.begun[row] });
      return node;
    });
    edges.from.forEach((from, at) => rows[edges.to[at]].inputs.add(rows[from].key));
    for (const node of rows) if (node.state === "failed") node.outcome = "failed";
    this.#forget(now);
  }

  clear() {
    this.nodes.clear();
  }

  /** Nodes that are no longer published are done, unless executions say that they failed. */
  applyOutcomes(executions) {
    for (let n = 0; n < executions.length; n++) {
      const each = executions.newest(n);
      if (each.number < this.processedUntil) break;
      const node = this.nodes.get(`${each.client} ${each.id}`);
      if (node && !node.outcome) node.outcome = each.failed ? "failed" : "done";
    }
    this.processedUntil = executions.next;
    for (const node of this.nodes.values()) if (!node.isPublished) node.state = node.outcome || "done";
  }

  /**
   * The graphs as clients submitted them, and connected parts of nodes without a graph. Open ones come first, then
   * new ones: {key, client, graph, keys, begun (seconds of unix time; 0: not known), nodes, edges [[from, to]],
   * open}.
   */
  graphs() {
    const parents = new Map();
    const rootOf = (key) => {
      let root = key;
      while (parents.get(root) !== root) root = parents.get(root);
      for (let at = key; at !== root; ) [at] = [parents.get(at), parents.set(at, root)];
      return root;
    };
    for (const key of this.nodes.keys()) parents.set(key, key);
    for (const node of this.nodes.values()) {
      if (!node.graph) continue;
      const root = `graph ${node.client} ${node.graph}`;
      if (!parents.has(root)) parents.set(root, root);
      parents.set(rootOf(node.key), rootOf(root));
    }
    for (const node of this.nodes.values()) {
      for (const input of node.inputs) if (parents.has(input)) parents.set(rootOf(input), rootOf(node.key));
    }
    const found = new Map();
    for (const node of this.nodes.values()) {
      const root = rootOf(node.key);
      if (!found.has(root)) found.set(root, []);
      found.get(root).push(node);
    }
    return [...found.values()]
      .map(connected)
      .filter((graph) => graph.graph || graph.open || graph.nodes.length > 1)
      .sort((left, right) => Math.sign(right.open) - Math.sign(left.open) || right.begun - left.begun || right.nodes.length - left.nodes.length);
  }

  /** Drop graphs that ended a while ago, and the oldest ended nodes if there are too many. */
  #forget(now) {
    for (const graph of this.graphs()) {
      const seen = Math.max(...graph.nodes.map((node) => node.seenAt));
      if (!graph.open && now - seen > KEEP_ENDED_MILLISECONDS) for (const node of graph.nodes) this.nodes.delete(node.key);
    }
    for (const [key, node] of this.nodes) {
      if (this.nodes.size <= MAX_NODES) return;
      if (!node.isOpen) this.nodes.delete(key);
    }
  }
}

function connected(nodes) {
  const numbers = new Map(nodes.map((node, number) => [node.key, number]));
  const edges = [];
  nodes.forEach((node, to) => {
    for (const input of node.inputs) if (numbers.has(input)) edges.push([numbers.get(input), to]);
  });
  const { client, key } = nodes[0];
  const named = nodes.find((node) => node.graph) ?? nodes[0];
  const begun = Math.min(...nodes.map((node) => node.begun ?? Infinity));
  return {
    key: named.graph ? `graph ${client} ${named.graph}` : key,
    client,
    graph: named.graph,
    keys: named.keys,
    begun: Number.isFinite(begun) ? begun : 0,
    nodes,
    edges,
    open: nodes.filter((node) => node.isOpen).length,
  };
}
