// Views of the network: the map, brokers, moves and decisions, balance.

import { act, chooser } from "./acting.js";
import { curves } from "./curves.js";
import { OverlayMap } from "./map.js";
import { get } from "./server.js";
import {
  bar, byteRate, bytes, clock, element, empty, facts, heading, moment, number, percent, rate, seconds, state, table,
} from "./text.js";

const WAIT = "Waiting for the first answer of the network ...";

// What can be done with a broker.
export function brokerActions(row, overview) {
  if (overview.replay) return "";
  const others = overview.brokers.filter((each) => each.broker !== row.broker && each.state === "serving")
    .map((each) => each.broker);
  const button = (text, action) => element("button", { type: "button", onclick: action }, text);
  const target = { name: "to", label: "Broker that takes them", make: chooser(others), read: (input) => input.value };
  const made = [];
  if (row.state === "draining") {
    made.push(button("Undrain", () => act(`Undrain ${row.broker}`, { kind: "undrain", broker: row.broker })));
  } else {
    made.push(button("Drain", () => act(`Drain ${row.broker}`, { kind: "drain", broker: row.broker },
      overview.has_coordinator ? [] : [target])));
  }
  made.push(button("Move clients", () => act(`Move clients of ${row.broker}`, { kind: "move", broker: row.broker }, [
    target,
    { name: "clients", label: "Names of clients, separated by commas; or a number of them, such as 3",
      make: () => element("input", { class: "wide", value: "1" }), read: (input) => input.value.trim() },
  ], readClients)));
  return element("div", { class: "row" }, made);
}

// Names, or how many.
function readClients({ clients, ...request }) {
  if (/^[0-9]+$/.test(clients)) return { ...request, count: Number(clients) };
  return { ...request, clients: clients.split(",").map((each) => each.trim()).filter(Boolean) };
}

function brokerFacts(row) {
  return facts([
    ["State", state(row.state)], ["Input utilisation Ir", percent(row.input_utilisation)],
    ["Output utilisation Or", percent(row.output_utilisation)],
    ["Time for a message d", seconds(row.matching_delay_s)], ["Publications", rate(row.publications_per_s)],
    ["In", byteRate(row.input_bytes_per_s)], ["Out", byteRate(row.output_bytes_per_s)],
    ["Clients", `${row.clients}${row.clients_away ? `, ${row.clients_away} away` : ""}`],
    ["of them publishers", number(row.publishers)], ["Subscriptions", number(row.subscriptions)],
    ["Advertisements", number(row.advertisements)], ["In queues", bytes(row.queue_bytes)],
    ["Dropped", number(row.dropped)], ...(row.role ? [["Balancing", `${row.role}, ${row.balancing}`]] : []),
    ["Address", element("code", {}, row.url || "–")],
  ]);
}

export class MapView {
  constructor() {
    this.chosen = null;
    this.seen = null;
    this.map = new OverlayMap((broker) => { this.chosen = broker; this.update(this.known); });
    this.side = element("aside", { class: "card", "aria-live": "polite" });
    this.element = element("div", {},
      heading("Map", "Brokers and the links between them. A larger circle has more load, a thicker line more traffic."
        + " Red: above 90 %. ▲ publishers, ▼ other clients. A violet dot is a client that moves; a dotted line is a soft link of a mesh."),
      element("div", { class: "mapping" }, element("div", { class: "card" }, this.map.element), this.side));
  }

  close() { this.map.close(); }

  update(known, kind) {
    this.known = known;
    const { overview } = known;
    if (!overview) return this.side.replaceChildren(empty(WAIT));
    if (kind !== "activity") this.map.show(overview, this.chosen);
    if (known.activity) this.animate(known.activity);
    const row = overview.brokers.find((each) => each.broker === this.chosen);
    if (row) {
      this.side.replaceChildren(element("h2", {}, `Broker ${row.broker}`), brokerFacts(row),
        element("p", {}), brokerActions(row, overview));
    } else {
      const busiest = [...overview.brokers].sort((a, b) => b.load - a.load).slice(0, 8);
      this.side.replaceChildren(element("h2", {}, "Most loaded"),
        table([["Broker"], ["Load", true], ["Clients", true]], busiest.map((each) => ({
          cells: [each.broker, element("span", {}, bar(each.load), percent(each.load)), number(each.clients)],
          tabindex: 0, onclick: () => { this.chosen = each.broker; this.update(known); },
        }))), element("p", { class: "soft" }, overview.replay ? "Choose a broker to see more." : "Choose a broker to see more, and to drain it."));
    }
    return undefined;
  }

  animate(activity) {
    const moves = [
      ...activity.moves.filter((move) => move.outcome === "moved" || move.outcome === "asked")
        .map((move) => [`m${move.number}`, move.source, move.target, move.client]),
      ...activity.decisions.filter(({ decision }) => decision.source && decision.target)
        .map(({ broker, decision }) => [`d${broker}${decision.number}${decision.at_s}`, decision.source, decision.target, decision.subject]),
    ];
    if (this.seen) {
      for (const [id, source, target, client] of moves) if (!this.seen.has(id)) this.map.move(source, target, client);
    }
    this.seen = new Set(moves.map(([id]) => id));
  }
}

const COLUMNS = [
  ["Broker", (row) => row.broker, (row) => row.broker], ["State", (row) => state(row.state), (row) => row.state],
  ["Load", (row) => element("span", {}, bar(row.load), percent(row.load)), (row) => row.load, true],
  ["Ir", (row) => percent(row.input_utilisation), (row) => row.input_utilisation, true],
  ["Or", (row) => percent(row.output_utilisation), (row) => row.output_utilisation, true],
  ["d", (row) => seconds(row.matching_delay_s), (row) => row.matching_delay_s, true],
  ["Publications", (row) => rate(row.publications_per_s), (row) => row.publications_per_s, true],
  ["Out", (row) => byteRate(row.output_bytes_per_s), (row) => row.output_bytes_per_s, true],
  ["Queues", (row) => bytes(row.queue_bytes), (row) => row.queue_bytes, true],
  ["Clients", (row) => number(row.clients), (row) => row.clients, true],
  ["Subscriptions", (row) => number(row.subscriptions), (row) => row.subscriptions, true],
  ["Dropped", (row) => number(row.dropped), (row) => row.dropped, true],
];

export class BrokersView {
  constructor() {
    this.sorted = 0;
    this.falling = false;
    this.chosen = null;
    this.rows = element("div", { class: "card" });
    this.detail = element("div", { "aria-live": "polite" });
    this.search = element("input", { placeholder: "Name of a broker", "aria-label": "Name of a broker", oninput: () => this.update(this.known) });
    this.element = element("div", {}, heading("Brokers",
      "Ir and Or: the shares of time and output bandwidth that are used. d: the time for one message. Choose a row for its history.",
      this.search), this.rows, this.detail);
  }

  update(known, kind) {
    this.known = known;
    const { overview } = known;
    if (!overview) return this.rows.replaceChildren(empty(WAIT));
    if (kind && kind !== "overview") return undefined;
    const value = COLUMNS[this.sorted][2];
    const text = this.search.value.toLowerCase();
    const rows = overview.brokers.filter((row) => row.broker.toLowerCase().includes(text));
    if (this.sorted || this.falling) {
      rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (this.falling ? -1 : 1));
    }
    const choose = (row) => () => { this.chosen = row.broker; this.history(); this.update(known); };
    const made = table(COLUMNS.map(([name, , , isNumber]) => [name, isNumber]), rows.map((row) => ({
      cells: COLUMNS.map(([, cell]) => cell(row)), tabindex: 0, class: row.broker === this.chosen ? "chosen" : "",
      onclick: choose(row), onkeydown: (event) => { if (event.key === "Enter") choose(row)(); },
    })));
    made.querySelectorAll("th").forEach((head, index) => {
      const mark = index === this.sorted && (this.sorted || this.falling) ? (this.falling ? " ▾" : " ▴") : "";
      head.replaceChildren(element("button", { type: "button", onclick: () => {
        this.falling = this.sorted === index ? !this.falling : COLUMNS[index][3] === true;
        this.sorted = index;
        this.update(known);
      } }, COLUMNS[index][0] + mark));
    });
    this.rows.replaceChildren(made);
    if (this.chosen) this.history();
    return undefined;
  }

  async history() {
    const name = this.chosen;
    const row = this.known.overview.brokers.find((each) => each.broker === name);
    const { at_s, figures } = await get("/api/history", { broker: name }).catch(() => ({ at_s: [], figures: {} }));
    if (name !== this.chosen || !row) return;
    this.detail.replaceChildren(element("div", { class: "columns" },
      element("section", { class: "card" }, element("h2", {}, `Broker ${name}`), brokerFacts(row), element("p", {}),
        brokerActions(row, this.known.overview)),
      curves(`Utilisation of ${name}`, at_s, [
        { name: "input Ir", values: figures.input_utilisation || [], look: "load" },
        { name: "output Or", values: figures.output_utilisation || [], look: "good" }], percent),
      curves(`Publications of ${name}`, at_s, [
        { name: "publications", values: figures.publications_per_s || [], look: "flow" }], rate),
      curves(`Queues of ${name}`, at_s, [{ name: "waiting", values: figures.queue_bytes || [], look: "move" }], bytes)));
  }
}

const OUTCOMES = { moved: "good", done: "good", asked: "move", waiting: "move", running: "move", proposed: "warn",
  stayed: "warn", incomplete: "warn", "taken back": "warn", failed: "bad", dropped: "warn", unknown: "warn" };
const outcome = (word) => element("span", { class: `pill ${OUTCOMES[word] || ""}` }, word);

export class MovesView {
  constructor() {
    this.change = element("div");
    this.moves = element("div", { class: "card" });
    this.decisions = element("div", { class: "card" });
    this.history = element("div", { class: "card" });
    this.element = element("div", {}, heading("Moves and decisions",
      "Who was moved, from where to where, and why: by the coordinator, by the policies of brokers, and by operators."),
    this.change, this.moves, this.decisions, this.history);
  }

  update({ overview, activity }) {
    if (!overview || !activity) return this.moves.replaceChildren(empty(WAIT));
    this.change.replaceChildren(...present(overview));
    this.moves.replaceChildren(element("h2", {}, "Moves of the coordinator"),
      activity.says ? element("p", { class: "soft" }, `Last look at the loads: ${activity.says}`) : "",
      activity.moves.length ? table([["Client"], ["From"], ["To"], ["Outcome"], ["Why"], [""]], activity.moves.slice(0, 50).map((move) => [
        move.client, move.source, move.target, outcome(move.outcome),
        move.because ? `${move.why}; ${move.because}` : move.why, this.proposal(move)]))
        : empty(overview.has_coordinator ? "None yet: the loads are balanced, or no one subscribes to channels." : "This network has no coordinator."));
    this.decisions.replaceChildren(element("h2", {}, "Decisions of policies"),
      activity.decisions.length ? table([["When"], ["Broker"], ["Policy"], ["Action"], ["Client"], ["From"], ["To"], ["Numbers behind it"]],
        activity.decisions.slice(0, 60).map(({ broker, decision }) => [moment(decision.at_s), broker, decision.policy, decision.action,
          decision.subject, decision.source, decision.target, reason(decision.reason)]))
        : empty("None yet. Policies are switched on with [placement] or [balancing] in the network file."));
    this.history.replaceChildren(element("h2", {}, "Changes of the network"),
      activity.changes.length ? table([["No.", true], ["When"], ["What"], ["State"], ["By"], ["Clients moved", true], ["Why"]],
        activity.changes.map((change) => [number(change.number), clock(change.asked_s),
          `${change.request.kind} ${change.request.brokers.slice(0, 6).join(", ")}`, outcome(change.state), change.request.asked_by,
          number(change.steps.reduce((sum, step) => sum + step.moved, 0)), change.because || change.request.reason]))
        : empty("None yet."), overview.replay ? "" : element("div", { class: "row" }, planButton()));
    return undefined;
  }

  // A proposal of a dry run: approving moves the client now, rejecting keeps it where it is for a while.
  proposal(move) {
    if (move.outcome !== "proposed") return "";
    return element("div", { class: "row" },
      element("button", { type: "button", onclick: () => act(`Move ${move.client}`,
        { kind: "move", broker: move.source, to: move.target, clients: [move.client] }) }, "Approve"),
      element("button", { type: "button", onclick: () => act(`Reject the move of ${move.client}`,
        { kind: "reject", move: move.number }) }, "Reject"));
  }
}

function present(overview) {
  const change = overview.change;
  if (!change || !["running", "being taken back"].includes(change.state)) return [];
  const steps = change.steps.map((step) => [step.kind, step.broker, outcome(step.state),
    step.clients ? `${step.moved} of ${step.clients}` : "", step.says]);
  return [element("div", { class: "card" }, element("h2", {}, `Change ${change.number} is ${change.state}`),
    table([["Step"], ["Broker"], ["State"], ["Clients moved", true], [""]], steps),
    element("div", { class: "row" }, element("button", { type: "button",
      onclick: () => act("Take the change back", { kind: "abort" }) }, "Take it back")))];
}

function planButton() {
  return element("button", { type: "button", onclick: () => act("Apply a plan", { kind: "apply" }, [{
    name: "plan", label: "A plan of `godwit croc plan --json`", make: () => element("textarea", { rows: 8 }),
    read: (input) => input.value }]) }, "Apply a plan ...");
}

function reason(numbers) {
  return Object.entries(numbers).map(([name, value]) =>
    `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value ?? "–"}`).join(", ");
}

export class BalanceView {
  constructor() {
    this.figures = element("div", { class: "big" });
    this.curves = element("div", { class: "columns" });
    this.brokers = element("div", { class: "card" });
    this.tools = element("div", { class: "row" });
    this.element = element("div", {}, heading("Balance",
      "How even the loads of the brokers are. The cov is the standard deviation over the mean: 0 is perfect balance.", this.tools),
    this.figures, this.curves, this.brokers);
    this.history = null;
  }

  async update({ overview }, kind) {
    if (!overview) return this.figures.replaceChildren(empty(WAIT));
    if (kind && kind !== "overview") return undefined;
    const { balance } = overview;
    const bound = balance.lower_bound;
    this.figures.replaceChildren(...[
      [percent(balance.maximum), "highest load"], [percent(balance.mean), "mean load"], [balance.cov.toFixed(2), "cov of the loads"],
      [bound === null ? "–" : percent(bound), "lower bound of the maximum"],
      [balance.is_balancing ? (balance.is_paused ? "paused" : balance.is_dry_run ? "dry run" : "on") : "off", "balancing by brokers"],
      [number(balance.sessions), "sessions now"]].map(([value, text]) => element("div", {}, element("b", {}, value), element("span", {}, text))));
    const button = (text, request) => element("button", { type: "button", onclick: () => act(text, request) }, text);
    this.tools.replaceChildren(...(balance.is_balancing
      ? [balance.is_paused ? button("Resume balancing", { kind: "resume" }) : button("Pause balancing", { kind: "pause" })] : []));
    const rows = [...overview.brokers].sort((a, b) => b.load - a.load).slice(0, 40);
    this.brokers.replaceChildren(element("h2", {}, "Loads, the highest first"),
      ...balance.obstacles.map((text) => element("p", { class: "no" }, text)),
      table([["Broker"], ["Load"], ["Clients", true], ["Role"], ["Status"]], rows.map((row) => [row.broker,
        element("span", {}, bar(row.load), percent(row.load)), number(row.clients), row.role || "–", row.balancing || "–"])));
    const { at_s, figures } = await get("/api/history").catch(() => ({ at_s: [], figures: {} }));
    this.curves.replaceChildren(
      curves("Load of brokers", at_s, [
        { name: "maximum", values: figures.maximum || [], look: "load" }, { name: "mean", values: figures.mean || [], look: "flow" },
        { name: "lower bound", values: figures.lower_bound || [], look: "good dash" }], percent),
      curves("Cov of the loads", at_s, [{ name: "cov", values: figures.cov || [], look: "load" }], (value) => value.toFixed(2)),
      curves("Traffic", at_s, [
        { name: "handled by brokers", values: figures.publications_per_s || [], look: "flow" },
        { name: "delivered to clients", values: figures.deliveries_per_s || [], look: "good" }], rate));
    return undefined;
  }
}
