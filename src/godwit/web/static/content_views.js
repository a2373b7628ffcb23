// Views of what flows: filters and stories, channels, the live tail, the lab.

import { get, listen, post } from "./server.js";
import { bytes, clock, element, empty, heading, number, seconds, table } from "./text.js";

const EXAMPLE = "{\"class\": \"STOCK\", \"symbol\": \"YHOO\", \"low\": 18.4}";
const mono = (text) => element("code", {}, text);
const wrong = (error) => element("p", { class: "no" }, error.message || String(error));

// Each filter below the narrowest one that covers it, with its level, and how many it has below.
function forest(rows) {
  const below = new Map(rows.map((row) => [row.subscription.id, []]));
  const roots = rows.filter((row) => !below.get(row.covered_by)?.push(row));
  const ordered = [];
  const add = (row, level) => {
    const place = ordered.push([row, level, 0]) - 1;
    for (const each of below.get(row.subscription.id)) add(each, level + 1);
    ordered[place][2] = ordered.length - place - 1;
  };
  for (const root of roots) add(root, 0);
  return ordered;
}

export class FiltersView {
  constructor() {
    this.record = element("input", { class: "wide mono", placeholder: EXAMPLE, "aria-label": "Record", name: "record" });
    this.publisher = element("input", { placeholder: "publisher, or", "aria-label": "Publisher", name: "publisher" });
    this.broker = element("input", { placeholder: "broker", "aria-label": "Broker", size: 6, name: "broker" });
    this.to = element("input", { placeholder: "subscriber (or everyone)", "aria-label": "Subscriber", name: "to" });
    this.answer = element("div", { "aria-live": "polite" });
    this.contains = element("input", { placeholder: "Text in a filter or a name", "aria-label": "Text in a filter or a name", oninput: () => this.later() });
    this.list = element("div", {}, empty("Asking all brokers ..."));
    const form = element("form", { class: "card", onsubmit: (event) => { event.preventDefault(); this.match(); } },
      element("h2", {}, "Who gets this record, and why not?"),
      element("label", {}, "A record, as JSON or [attribute,value],...", this.record),
      element("div", { class: "row" }, element("button", { class: "main", type: "submit" }, "Who matches?"),
        element("span", { class: "soft" }, "or its way, published by"), this.publisher, this.broker,
        element("span", { class: "soft" }, "to"), this.to,
        element("button", { type: "button", onclick: () => this.why() }, "Tell the story"),
        element("button", { type: "button", onclick: () => this.client() }, "Story of this client")), this.answer);
    this.element = element("div", {}, heading("Filters and why",
      "All subscriptions of the network, each below one that covers it: who gets the upper one's publications gets those of the lower one, too. Type a record to see who matches it; nothing is published."), form,
    element("div", { class: "card" }, element("div", { class: "row" }, element("h2", {}, "Subscriptions"), this.contains), this.list));
    this.load();
  }

  update() {}

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 300);
  }

  async load() {
    try {
      const found = await get("/api/filters", { contains: this.contains.value });
      const rows = forest(found.subscriptions).map(([{ broker, subscription, covered_by }, level, behind]) => [
        element("span", {}, level ? element("span", { class: "mono soft" }, `${"\u00a0\u00a0".repeat(level - 1)}└ `) : "", mono(subscription.filter)),
        subscription.client, broker, subscription.in_effect ? "in effect" : element("span", { class: "no" }, "not yet"),
        covered_by ? "covered" : behind ? `covers ${behind}` : ""]);
      this.list.replaceChildren(rows.length ? table([["Filter"], ["Client"], ["Broker"], ["State"], ["Covering"]], rows)
        : empty("No subscription."), element("p", { class: "soft" },
        `${rows.length} of ${found.found} subscriptions are shown, and ${found.advertisements.length} advertisements are known.`
        + (found.silent.length ? ` No answer from ${found.silent.join(", ")}.` : "")));
    } catch (error) {
      this.list.replaceChildren(wrong(error));
    }
  }

  async match() {
    try {
      const answer = await post("/api/matches", { record: this.record.value });
      const row = ({ broker, finding }) => [finding.client, broker, mono(finding.filter),
        finding.passes ? element("span", { class: "yes" }, "matches") : element("span", { class: "no" }, finding.failures.join("; "))];
      this.answer.replaceChildren(
        element("p", {}, `${answer.count} of ${answer.looked_at} subscriptions match.`
          + (answer.looked_at < answer.found ? ` ${answer.found - answer.looked_at} more were not looked at.` : "")
          + (answer.silent.length ? ` No answer from ${answer.silent.join(", ")}.` : "")),
        table([["Client"], ["Broker"], ["Filter"], ["Result"]], [...answer.matching.slice(0, 50), ...answer.others.slice(0, 10)].map(row)));
    } catch (error) {
      this.answer.replaceChildren(wrong(error));
    }
  }

  async why() {
    try {
      const story = await post("/api/why", { record: this.record.value, publisher: this.publisher.value.trim(),
        broker: this.broker.value.trim(), to: this.to.value.trim() });
      this.answer.replaceChildren(...this.told(story));
    } catch (error) {
      this.answer.replaceChildren(wrong(error));
    }
  }

  async client() {
    const name = this.to.value.trim() || this.publisher.value.trim();
    try {
      if (!name) throw new Error("type the name of a client: a subscriber, or a publisher");
      const { says, events, silent } = await get("/api/client", { name });
      this.answer.replaceChildren(element("ul", {}, says.map((line) => element("li", {}, line))),
        events.length ? table([["When"], ["By"], ["What, and why"]], events.map((each) => [each.at_s ? clock(each.at_s) : "–", each.by, each.says]))
          : empty("No move and no decision about it is remembered."),
        silent.length ? element("p", { class: "soft" }, `No answer from ${silent.join(", ")}.`) : "");
    } catch (error) {
      this.answer.replaceChildren(wrong(error));
    }
  }

  told(story) {
    const isGood = story.reason === "delivered" || (!story.to && Object.keys(story.delivered_to).length > 0);
    const verdict = story.to
      ? `${story.to}: ${story.reason}${story.ends_at && !isGood ? `, at ${story.ends_at}` : ""}`
      : `${Object.keys(story.delivered_to).length} clients would get it`;
    const hops = story.hops.map((hop) => {
      const { explanation, broker } = hop.account;
      const ways = explanation.goes_to.slice(0, 12).map((way) => element("li", {}, `${way.kind} ${way.name} `,
        way.because.length ? mono(way.because[0].filter) : "", way.count > 1 ? ` and ${way.count - 1} more` : ""));
      return element("div", { class: `hop ${broker === story.ends_at && !isGood ? "end" : ""}` },
        element("b", {}, hop.came_from ? `${broker}, from ${hop.came_from}` : broker),
        element("span", { class: "soft" }, ` ${explanation.matching} of ${explanation.subscriptions} subscriptions match`),
        element("details", { open: story.hops.length < 4 }, element("summary", {}, "goes to"), element("ul", {}, ways)));
    });
    return [element("p", { class: isGood ? "yes" : "no" }, element("b", {}, verdict)),
      element("ul", {}, story.says.map((line) => element("li", {}, line))), element("div", { class: "story" }, hops)];
  }
}

export class ChannelsView {
  constructor() {
    this.body = element("div");
    this.element = element("div", {}, heading("Channels",
      "Datasets, and the channels that run over them: each execution answers all subscriptions at once."), this.body);
  }

  update({ overview, channels }, kind) {
    if (kind && kind !== "channels") return;
    if (!channels || !overview) return;
    if (!overview.has_datacluster) {
      this.body.replaceChildren(element("div", { class: "card" }, empty("This network has no data cluster. Add [services.datacluster] to the network file.")));
      return;
    }
    const trouble = channels.trouble ? [element("p", { class: "no" }, channels.trouble)] : [];
    const own = channels.datasets.filter((each) => !each.name.endsWith("_quarantine"));
    const datasets = own.map((each) => [each.name, number(each.rows), number(each.batches), bytes(each.size_bytes),
      bytes(each.waiting_bytes), Object.keys(each.feeds).join(", ") || "–",
      each.quarantined ? element("span", { class: "no" }, number(each.quarantined)) : "0"]);
    const rejected = own.flatMap((each) => each.rejected.map((one) => [clock(one.at_s), each.name, one.reason, mono(one.record)]));
    this.body.replaceChildren(...trouble, element("div", { class: "card" }, element("h2", {}, "Datasets"),
      datasets.length ? table([["Dataset"], ["Rows", true], ["Batches", true], ["Size", true], ["Waiting", true], ["Feeds"], ["Quarantined", true]], datasets) : empty("None yet."),
      rejected.length ? element("details", { open: true }, element("summary", {}, "Records that did not fit, and why"),
        table([["When"], ["Dataset"], ["Reason"], ["Record"]], rejected)) : ""),
    this.sharing(overview),
    ...(channels.channels.length ? channels.channels.map((each) => this.channel(each)) : [element("div", { class: "card" }, empty("No channel yet."))]));
  }

  // How many subscriptions of clients one query and one copy of its results serve.
  sharing({ sharing }) {
    if (!sharing?.front_end) return "";
    return element("div", { class: "card" }, element("h2", {}, "Sharing"), element("p", {},
      `${sharing.front_end} subscriptions of clients share ${sharing.back_end} of the data cluster: ${number(sharing.front_end / Math.max(1, sharing.back_end))} for each.`));
  }

  channel(each) {
    const runs = each.last.map((run) => [number(run.execution), clock(run.at_s), run.error ? element("span", { class: "no" }, run.state) : run.state,
      number(run.rows), run.took_s ? number(run.rows / run.took_s, "rows/s") : "–", seconds(run.took_s),
      Object.entries(run.timings_s).map(([name, took]) => `${name} ${seconds(took)}`).join(", "), run.error || ""]);
    return element("div", { class: "card" }, element("h2", {}, each.name),
      element("p", { class: "soft" }, `${each.subscriptions} subscriptions; ${each.every_s ? `every ${seconds(each.every_s)}` : "runs when there are new records"}; `
        + `${each.unread_batches} new batches`),
      element("details", {}, element("summary", {}, "Query"), element("pre", { class: "scroll mono" }, each.query)),
      runs.length ? table([["No.", true], ["When"], ["State"], ["Rows", true], ["Results", true], ["Took", true], ["Parts"], ["Error"]], runs) : empty("Not executed yet."));
  }
}

export class TailView {
  constructor() {
    this.filter = element("input", { class: "wide mono", value: "class is present", "aria-label": "Filter" });
    this.says = element("p", { class: "soft" }, "A tail is a subscriber: the network sends it all that match. At most 20 a second are shown.");
    this.list = element("ol", { class: "list tail card mono", reversed: true });
    this.button = element("button", { class: "main", type: "submit" }, "Follow");
    this.element = element("div", {}, heading("Live tail", "Publications that match a filter, as a subscriber gets them."),
      element("form", { class: "card", onsubmit: (event) => { event.preventDefault(); this.toggle(); } },
        element("label", {}, "Filter", this.filter), element("div", { class: "row" }, this.button), this.says), this.list);
  }

  update() {}

  close() { this.stopping?.abort(); }

  toggle() {
    if (this.stopping) { this.stopping.abort(); return; }
    this.follow();
  }

  async follow() {
    this.stopping = new AbortController();
    this.button.textContent = "Stop";
    this.says.textContent = "Subscribing ...";
    try {
      await listen(`/api/tail?filter=${encodeURIComponent(this.filter.value)}`, {
        ready: ({ broker }) => { this.says.textContent = `Subscribed at ${broker}.`; },
        records: (part) => this.add(part),
        ended: ({ reason }) => { this.says.textContent = `Ended: ${reason}`; },
      }, this.stopping.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.says.textContent = error.message;
    }
    this.stopping = null;
    this.button.textContent = "Follow";
  }

  add({ events, matched, seconds: span }) {
    this.says.textContent = `${number(matched / span, "/s")} match; ${events.length} of ${matched} are shown.`;
    this.list.prepend(...events.reverse().map((each) => element("li", {},
      element("span", { class: "soft" }, `${clock(each.at_s)} ${each.publisher}#${each.sequence}, ${each.hops} hops, ${seconds(each.delay_s)} `), each.text)));
    while (this.list.childElementCount > 300) this.list.lastChild.remove();
  }
}

const VERDICTS = { reproduced: "good", "not reproduced": "bad" };

export class LabView {
  constructor() {
    this.body = element("div", {}, empty("Reading the experiments ..."));
    this.element = element("div", {}, heading("Lab",
      "The papers' experiments, and which of their claims hold here. Results appear when `godwit lab run` has run on this machine."), this.body);
    this.load();
  }

  update() {}

  async load() {
    try {
      const { experiments, trouble } = await get("/api/lab");
      if (trouble) this.body.replaceChildren(element("div", { class: "card" }, empty(trouble)));
      else this.body.replaceChildren(...experiments.map((each) => this.experiment(each)));
    } catch (error) {
      this.body.replaceChildren(wrong(error));
    }
  }

  experiment(each) {
    const claims = each.claims.map((claim) => [claim.id, claim.statement, claim.source,
      claim.verdict ? element("span", { class: `pill ${VERDICTS[claim.verdict] || ""}` }, claim.verdict) : element("span", { class: "soft" }, "not run here"),
      claim.measured === null ? "" : number(claim.measured)]);
    return element("details", { class: "card" },
      element("summary", {}, element("b", {}, each.title), ` ${each.claims.length} claims${each.scale ? `, ${each.runs} runs at the scale ${each.scale}` : ""}`,
        element("p", { class: "soft" }, each.question)),
      element("p", {}, mono(`godwit lab run ${each.name}`)),
      claims.length ? table([["Claim"], ["Statement"], ["Source"], ["Verdict"], ["Measured", true]], claims) : empty("No claims."));
  }
}
