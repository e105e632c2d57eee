// The diagram of a graph: its nodes, or groups of nodes if there are too many.

import { count, cut, visible } from "../format.js";
import { STATES } from "./graph_store.js";

export const MAX_DRAWN = 300;
const CHARACTER_WIDTH = 6.8;
const MAX_CHARACTERS = 26;
const GROUP_CHARACTERS = 28;

/** {nodes: [{label, under, title, state, width, height, node}], edges: [[from, to]], how} */
export function diagramOf(graph) {
  if (graph.nodes.length <= MAX_DRAWN) return { ...graph, nodes: graph.nodes.map(single), how: "" };
  const byDepth = groupNodes(graph, (node, depth) => `${depth} ${node.name}`);
  if (byDepth.nodes.length <= MAX_DRAWN) return { ...byDepth, how: `${count(graph.nodes.length)} nodes, grouped by function and depth` };
  const byName = groupNodes(graph, (node) => node.name);
  if (byName.nodes.length <= MAX_DRAWN) return { ...byName, how: `${count(graph.nodes.length)} nodes, grouped by function` };
  return { nodes: [], edges: [], how: `${count(graph.nodes.length)} nodes of ${count(byName.nodes.length)} functions are too many to draw` };
}

function single(node) {
  const label = cut(node.name, MAX_CHARACTERS);
  return { label, under: "", title: `${visible(node.name)}, ${node.state}, id ${node.id}`, state: node.state, node, ...sizeOf(label, "") };
}

function groupNodes(graph, keyOf) {
  const depths = depthsOf(graph);
  const groups = new Map();
  const numbers = graph.nodes.map((node, row) => {
    const key = keyOf(node, depths[row]);
    if (!groups.has(key)) groups.set(key, { number: groups.size, name: node.name, states: new Map() });
    const { number, states } = groups.get(key);
    states.set(node.state, (states.get(node.state) ?? 0) + 1);
    return number;
  });
  const edges = new Map();
  for (const [from, to] of graph.edges) {
    const [left, right] = [numbers[from], numbers[to]];
    if (left !== right) edges.set(left * groups.size + right, [left, right]);
  }
  return { nodes: [...groups.values()].map(groupNode), edges: [...edges.values()] };
}

function groupNode({ name, states }) {
  const total = [...states.values()].reduce((sum, number) => sum + number, 0);
  const label = `${cut(name, MAX_CHARACTERS - 8)} × ${count(total)}`;
  const present = STATES.filter((state) => states.has(state));
  const under = present.map((state) => `${state[0].toUpperCase()} ${count(states.get(state))}`).join("  ");
  const long = present.map((state) => `${count(states.get(state))} ${state}`).join(", ");
  const state = ["failed", "running", "waiting", "blocked"].find((each) => states.has(each)) ?? "done";
  return { label, under, title: `${visible(name)}: ${long}`, state, node: null, ...sizeOf(label, under) };
}

function sizeOf(label, under) {
  const letters = Math.max(label.length, under ? GROUP_CHARACTERS : 3);
  return { width: Math.round(42 + letters * CHARACTER_WIDTH), height: under ? 46 : 30 };
}

/** The depth of each node: the length of the longest path to it. */
function depthsOf({ nodes, edges }) {
  const after = nodes.map(() => []);
  const missing = nodes.map(() => 0);
  for (const [from, to] of edges) {
    after[from].push(to);
    missing[to]++;
  }
  const depths = nodes.map(() => 0);
  const ready = nodes.flatMap((_, row) => (missing[row] ? [] : [row]));
  for (let at = 0; at < ready.length; at++) {
    for (const to of after[ready[at]]) {
      depths[to] = Math.max(depths[to], depths[ready[at]] + 1);
      if (--missing[to] === 0) ready.push(to);
    }
  }
  return depths;
}
