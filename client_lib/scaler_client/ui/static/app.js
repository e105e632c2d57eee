// Puts the page together: messages go from the feed into the model, views read the model.

import { Banner } from "./banner.js";
import { Details } from "./details.js";
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
/** Once looked at they are watched on: they would have to come from the beginning again. */
const LASTING_TOPICS = ["series", "tasks"];

function main() {
  const settings = new Settings(localStorage);
  const theme = new Theme(settings);
  const model = new Model(settings.get("window"), new FunctionColours(localStorage));
  const details = new Details(model, (row) => feed.askStory(row.client, row.id));
  const rowDetails = new RowDetails(model, (row) => details.open(row));
  const help = new Help();
  const context = { model, settings, theme, open: (row) => details.open(row), openRow: (kind, row) => rowDetails.open(kind, row) };
  const panels = document.getElementById("panels");
  const made = new Map();
  const lasting = new Set();
  let shown = null;
  let isDrawn = true;

  const draw = () => {
    if (!isDrawn) return;
    isDrawn = false;
    requestAnimationFrame(() => {
      isDrawn = true;
      shown.update();
      rowDetails.update();
    });
  };

  const topicsOf = (view) => {
    for (const topic of view.topics) if (LASTING_TOPICS.includes(topic)) lasting.add(topic);
    return [...new Set([...view.topics, ...lasting])];
  };

  const show = (id) => {
    const view = VIEWS.find((each) => each.id === id);
    if (!made.has(id)) made.set(id, view.create(context));
    shown?.hide?.();
    shown = made.get(id);
    if (panels.firstElementChild !== shown.element) panels.replaceChildren(shown.element);
    shown.show?.();
    feed.watch(topicsOf(view));
    draw();
  };

  const wanted = () => ({ interval: settings.get("interval"), window: Math.min(settings.get("window"), model.hello?.limits.window ?? Infinity) });
  const banner = new Banner({ model, retry: () => feed.retryNow() });
  const feed = new Feed({
    address: new URL("live", location.href.replace(/^http/, "ws").replace(/[?#].*$/, "")),
    onMessage: (message) => model.take(message),
    onState: (name, state) => banner.connectionIs(name, state),
    topics: [],
    settings: { interval: settings.get("interval") },
  });

  model.onChange((type) => {
    if (type === "hello") feed.set(wanted());
    if (type === "story") details.tell();
    if (["hello", "presence", "picture", "refused"].includes(type)) banner.update();
    draw();
  });
  settings.onChange((name, value) => {
    if (name === "window") model.setWindow(value);
    if (name === "window" || name === "interval") feed.set(wanted());
    draw();
  });
  theme.onChange(draw);

  const navigation = new Navigation(VIEWS, show);
  document.getElementById("help").addEventListener("click", () => help.toggle());
  document.addEventListener("keydown", (event) => takeKey(event, navigation, help, () => shown));
  navigation.follow();
}

const KEYS_OF_CONTROLS = ["Enter", " "];

/** Keys work wherever the focus is; what has the focus comes first. */
function takeKey(event, navigation, help, shownView) {
  const field = event.target.closest?.("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && field) field.blur();
  if (field || document.querySelector("dialog[open]:not(#help-dialog)")) return;
  if (event.key === "?") help.toggle();
  else if (event.key === "/") document.querySelector("#panels input[type=search]")?.focus();
  else if (!navigation.takeKey(event.key)) {
    // A button of a dialog that was closed has the focus until the next frame.
    const focused = event.target.closest?.("dialog:not([open])") ? null : event.target;
    const isControl = focused?.closest?.("button, a") && KEYS_OF_CONTROLS.includes(event.key);
    if (event.defaultPrevented || isControl || focused?.closest?.("dialog")) return;
    shownView()?.takeKey?.(event);
    return;
  }
  event.preventDefault();
}

main();
