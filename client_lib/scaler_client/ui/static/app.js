// Connects the parts of the page: the feed's messages go into the model, and the views read the model.

import { Banner } from "./banner.js";
import { TaskDetails } from "./task_details.js";
import { RowDetails } from "./row_details.js";
import { Feed } from "./feed.js";
import { Help } from "./help.js";
import { Model } from "./model.js";
import { Navigation } from "./navigation.js";
import { Settings } from "./settings.js";
import { Theme } from "./theme.js";
import { FunctionColours } from "./function_colours.js";
import { clients } from "./views/clients.js";
import { functions } from "./views/functions.js";
import { graphs } from "./views/graphs.js";
import { overview } from "./views/overview.js";
import { settingsView } from "./views/settings.js";
import { tasks } from "./views/tasks.js";
import { timeline } from "./views/timeline.js";
import { workers } from "./views/workers.js";

const VIEWS = [overview, workers, timeline, tasks, functions, clients, graphs, settingsView];
/** Topics that stay watched once a view has shown them: otherwise all their data would have to come again. */
const PERSISTENT_TOPICS = ["series", "tasks"];

function main() {
  const settings = new Settings(localStorage);
  const theme = new Theme(settings);
  const model = new Model(settings.get("window"), new FunctionColours(localStorage));
  const details = new TaskDetails(model, (row) => feed.askStory(row.client, row.id));
  const rowDetails = new RowDetails(model, (row) => details.open(row));
  const help = new Help();
  const context = { model, settings, theme, open: (row) => details.open(row), openRow: (kind, row) => rowDetails.open(kind, row) };
  const panels = document.getElementById("panels");
  const created = new Map();
  const persistentTopics = new Set();
  let shownView = null;
  let isDrawDone = true;

  const draw = () => {
    if (!isDrawDone) return;
    isDrawDone = false;
    requestAnimationFrame(() => {
      isDrawDone = true;
      shownView.update();
      rowDetails.update();
    });
  };

  const topicsOf = (view) => {
    for (const topic of view.topics) if (PERSISTENT_TOPICS.includes(topic)) persistentTopics.add(topic);
    return [...new Set([...view.topics, ...persistentTopics])];
  };

  const show = (id) => {
    const view = VIEWS.find((each) => each.id === id);
    if (!created.has(id)) created.set(id, view.create(context));
    shownView?.hide?.();
    shownView = created.get(id);
    if (panels.firstElementChild !== shownView.element) panels.replaceChildren(shownView.element);
    shownView.show?.();
    feed.watch(topicsOf(view));
    draw();
  };

  const requestedSettings = () => ({ interval: settings.get("interval"), window: Math.min(settings.get("window"), model.hello?.limits.window ?? Infinity) });
  const banner = new Banner({ model, retry: () => feed.retryNow() });
  const feed = new Feed({
    address: new URL("live", location.href.replace(/^http/, "ws").replace(/[?#].*$/, "")),
    onMessage: (message) => model.apply(message),
    onState: (name, state) => banner.setConnection(name, state),
    topics: [],
    settings: { interval: settings.get("interval") },
  });

  model.onChange((type) => {
    if (type === "hello") feed.setSettings(requestedSettings());
    if (type === "story") details.showStory();
    if (["hello", "presence", "snapshot", "refused"].includes(type)) banner.update();
    draw();
  });
  settings.onChange((name, value) => {
    if (name === "window") model.setWindow(value);
    if (name === "window" || name === "interval") feed.setSettings(requestedSettings());
    draw();
  });
  theme.onChange(draw);

  const navigation = new Navigation(VIEWS, show);
  document.getElementById("help").addEventListener("click", () => help.toggle());
  document.addEventListener("keydown", (event) => handleKey(event, navigation, help, () => shownView));
  navigation.follow();
}

const CONTROL_KEYS = ["Enter", " "];

/** Keys work wherever the focus is. A focused control handles its keys first. */
function handleKey(event, navigation, help, shownView) {
  const field = event.target.closest?.("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && field) field.blur();
  if (field || document.querySelector("dialog[open]:not(#help-dialog)")) return;
  if (event.key === "?") help.toggle();
  else if (event.key === "/") document.querySelector("#panels input[type=search]")?.focus();
  else if (!navigation.handleKey(event.key)) {
    // A button of a closed dialog keeps the focus until the next frame.
    const focused = event.target.closest?.("dialog:not([open])") ? null : event.target;
    const isControl = focused?.closest?.("button, a") && CONTROL_KEYS.includes(event.key);
    if (event.defaultPrevented || isControl || focused?.closest?.("dialog")) return;
    shownView()?.handleKey?.(event);
    return;
  }
  event.preventDefault();
}

main();
