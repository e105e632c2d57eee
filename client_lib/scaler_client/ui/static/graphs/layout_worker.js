// Computes the layout of a diagram with dagre, in a worker thread: some hundred nodes take a while.

import dagre from "../vendor/dagre.esm.js";

/** {job, sizes: [[width, height]], edges: [[from, to]]} -> {job, width, height, places: [[x, y]], lines: [[[x, y], ...]]} */
self.addEventListener("message", ({ data }) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 52, edgesep: 8, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  data.sizes.forEach(([width, height], number) => graph.setNode(String(number), { width, height }));
  for (const [from, to] of data.edges) graph.setEdge(String(from), String(to));
  dagre.layout(graph);
  const { width, height } = graph.graph();
  self.postMessage({
    job: data.job,
    width,
    height,
    places: data.sizes.map((_, number) => {
      const { x, y } = graph.node(String(number));
      return [x, y];
    }),
    lines: data.edges.map(([from, to]) => graph.edge(String(from), String(to)).points.map(({ x, y }) => [x, y])),
  });
});
