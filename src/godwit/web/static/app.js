// The page: one stream of events fills `known`, the address says which view is shown.
// A view has `open(known)`, which makes its elements, `update(known)` for new data, and `close()`.

import { close, keys } from "./acting.js";
import { ReplayBar } from "./replay.js";
import { listen } from "./server.js";
import { byteRate, element, number, rate } from "./text.js";
import { BalanceView, BrokersView, MapView, MovesView } from "./network_views.js";
import { ChannelsView, FiltersView, LabView, TailView } from "./content_views.js";

const VIEWS = [
  ["map", "Map", MapView], ["brokers", "Brokers", BrokersView], ["moves", "Moves and decisions", MovesView],
  ["balance", "Balance", BalanceView], ["filters", "Filters and why", FiltersView],
  ["channels", "Channels", ChannelsView], ["tail", "Live tail", TailView], ["lab", "Lab", LabView],
];
const known = { overview: null, activity: null, channels: null };
const main = document.getElementById("main");
let view = null, shown = "";

// Views that need the network itself: a recorded trace has no tables, and no channels.
const LIVE_ONLY = ["filters", "channels", "tail"];
const replayBar = new ReplayBar(document.getElementById("replay"));

function show() {
  const wanted = location.hash.slice(1);
  const isThere = VIEWS.some(([each]) => each === wanted) && !(known.overview?.replay && LIVE_ONLY.includes(wanted));
  const name = isThere ? wanted : "map";
  if (name === shown) return;
  view?.close?.();
  shown = name;
  view = new (VIEWS.find(([each]) => each === name)[2])(known);
  main.replaceChildren(view.element);
  view.update(known);
  document.title = `${VIEWS.find(([each]) => each === name)[1]} – Godwit`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function tell(kind, data) {
  known[kind] = data;
  if (kind === "overview") header(data);
  view?.update(known, kind);
}

function header({ totals, troubles, missing, left_out, replay }) {
  replayBar.show(replay);
  for (const link of document.querySelectorAll("nav a")) {
    link.hidden = Boolean(replay) && LIVE_ONLY.includes(link.hash.slice(1));
  }
  const parts = [
    [`${totals.serving} of ${totals.brokers}`, "brokers serve"], [number(totals.clients), "clients"],
    [rate(totals.publications_per_s), "handled"], [rate(totals.deliveries_per_s), "delivered"],
    [byteRate(totals.output_bytes_per_s), "sent"],
  ];
  document.getElementById("totals").replaceChildren(
    ...parts.map(([value, text]) => element("span", {}, element("b", {}, value), ` ${text}`)));
  const notes = [...troubles, ...missing.map((each) => `missing: ${each}`)];
  if (left_out) notes.push(`${left_out} brokers that serve with less load are not shown`);
  const banner = document.getElementById("banner");
  banner.hidden = !notes.length;
  banner.textContent = notes.slice(0, 5).join(" · ");
}

function connection(text, kind) {
  const pill = document.getElementById("connection");
  pill.textContent = text;
  pill.className = `pill ${kind}`;
}

async function follow() {
  let pause_ms = 500;
  const on = Object.fromEntries(Object.keys(known).map((kind) => [kind, (data) => {
    pause_ms = 500;
    connection(data.replay || known.overview?.replay ? "recorded" : "live", "good");
    tell(kind, data);
  }]));
  for (;;) {
    try {
      await listen("/api/stream", on);
    } catch (error) {
      connection("no connection", "bad");
      await new Promise((done) => setTimeout(done, pause_ms));
      pause_ms = Math.min(5000, 2 * pause_ms);
    }
  }
}

function theme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function onKey(event) {
  if (event.key === "Escape") return close();
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("dialog").open) return undefined;
  if (event.key >= "1" && event.key <= String(VIEWS.length)) location.hash = VIEWS[event.key - 1][0];
  else if (event.key === "t") theme();
  else if (event.key === " " && event.target === document.body) {
    if (replayBar.toggle()) event.preventDefault();
  } else if (event.key === "?") keys();
  else if (event.key === "/") {
    event.preventDefault();
    main.querySelector("input, textarea")?.focus();
  }
  return undefined;
}

document.getElementById("nav").append(...VIEWS.map(([name, text], index) =>
  element("a", { href: `#${name}` }, text, element("kbd", {}, String(index + 1)))));
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
document.getElementById("theme").addEventListener("click", theme);
document.getElementById("help").addEventListener("click", keys);
window.addEventListener("hashchange", show);
document.addEventListener("keydown", onKey);
show();
follow();
