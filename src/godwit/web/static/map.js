// The map of the overlay: brokers sized by load, links by rate, moves as dots that travel.
// A unit of the drawing is a pixel of the screen, so that text has the same size everywhere.

import { layout } from "./layout.js";
import { byteRate, drawn, element, percent } from "./text.js";

const MARGIN = 56, TEXT_WIDTH = 52, ZOOM_MAX = 12;

export class OverlayMap {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.places = new Map();
    this.shape = "";
    this.zoom = 1;
    this.left = 0;
    this.top = 0;
    this.svg = drawn("svg", { class: "map", role: "group", "aria-label": "Map of brokers and links" });
    this.links = drawn("g");
    this.nodes = drawn("g");
    this.movers = drawn("g");
    this.svg.append(this.links, this.nodes, this.movers);
    const button = (text, label, by) => element("button", { type: "button", "aria-label": label, title: label,
      onclick: () => this.zoomBy(by) }, text);
    this.element = element("div", { class: "mapped" }, this.svg, element("div", { class: "zoom" },
      button("+", "Closer", 1.5), button("−", "Farther", 1 / 1.5), button("◻", "The whole map", 0)));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.svg);
    this.svg.addEventListener("wheel", (event) => {
      if (this.zoom === 1 && !event.ctrlKey) return; // The page scrolls.
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.offsetX, event.offsetY);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => { this.held = { x: event.clientX, y: event.clientY, left: this.left, top: this.top }; });
    this.svg.addEventListener("pointermove", (event) => {
      if (!this.held || !event.buttons || this.zoom === 1) return;
      this.left = this.held.left + event.clientX - this.held.x;
      this.top = this.held.top + event.clientY - this.held.y;
      this.draw();
    });
  }

  close() { this.observer.disconnect(); }

  show(overview, chosen) {
    this.overview = overview;
    this.chosen = chosen;
    const names = overview.brokers.map((row) => row.broker);
    const shape = JSON.stringify([names, overview.links.map((link) => [link.one, link.other, link.kind])]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.places = layout(names, overview.links);
    }
    this.draw();
  }

  // 0 is the whole map.  The point (x, y) of the screen stays where it is.
  zoomBy(by, x = this.wide / 2, y = this.high / 2) {
    const zoom = by ? Math.min(ZOOM_MAX, Math.max(1, this.zoom * by)) : 1;
    this.left = zoom === 1 ? 0 : x - ((x - this.left) * zoom) / this.zoom;
    this.top = zoom === 1 ? 0 : y - ((y - this.top) * zoom) / this.zoom;
    this.zoom = zoom;
    this.draw();
  }

  at(name) {
    const place = this.places.get(name);
    return place && {
      x: this.left + this.zoom * (MARGIN + place.x * (this.wide - 2 * MARGIN)),
      y: this.top + this.zoom * (MARGIN + place.y * (this.high - 2 * MARGIN)),
    };
  }

  draw() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!this.overview || !width) return;
    this.wide = width;
    this.high = height;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const { brokers, links } = this.overview;
    this.room = this.zoom * Math.sqrt((width * height) / Math.max(1, brokers.length));
    const most = Math.max(1, ...links.map((link) => link.bytes_per_s));
    this.links.replaceChildren(...links.flatMap((link) => this.link(link, most)));
    const focused = document.activeElement?.dataset?.broker;
    this.nodes.replaceChildren(...brokers.map((row) => this.node(row)));
    if (focused) this.nodes.querySelector(`[data-broker="${CSS.escape(focused)}"]`)?.focus();
  }

  link(link, most) {
    const a = this.at(link.one), b = this.at(link.other);
    if (!a || !b) return [];
    const isUp = link.status === "up", isSoft = link.kind === "soft";
    const text = isUp ? byteRate(link.bytes_per_s) : link.status;
    const what = isSoft ? "soft link" : link.kind === "cross" ? "second way" : "link";
    const made = [drawn("line", { class: `link ${isUp ? "" : "down"} ${isSoft ? "soft" : ""}`, x1: a.x, y1: a.y, x2: b.x, y2: b.y,
      "stroke-width": isUp ? 1.2 + 8 * Math.sqrt(link.bytes_per_s / most) : 2 },
    drawn("title", {}, `${link.one} – ${link.other}: ${what}, ${isUp ? `up, ${text}` : text}`))];
    if (this.room > 110 && (!isUp || link.bytes_per_s)) {
      made.push(drawn("text", { class: "quiet", x: (a.x + b.x) / 2 + 6, y: (a.y + b.y) / 2 + 4 }, text));
    }
    return made;
  }

  node(row) {
    const place = this.at(row.broker);
    const isSmall = this.room < 1.6 * TEXT_WIDTH && row.broker !== this.chosen;
    const share = Math.sqrt(Math.min(1, row.load));
    const radius = isSmall ? Math.max(3, this.room * (0.1 + 0.16 * share)) : 24 + 18 * share;
    const kind = row.state === "serving" ? "" : row.state === "draining" || row.state === "joining" ? "draining" : "trouble";
    const choose = () => this.onChoose(row.broker);
    const text = `${row.broker}: ${row.state}, load ${percent(row.load)}, ${row.clients} clients`;
    const node = drawn("g", { class: `node ${kind} ${row.load > 0.9 ? "high" : ""} ${row.broker === this.chosen ? "chosen" : ""}`, tabindex: 0,
      role: "button", "aria-label": text, "data-broker": row.broker, onclick: choose,
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } },
      transform: `translate(${place.x} ${place.y})` },
    drawn("title", {}, text), drawn("circle", { class: "body", r: radius }), drawn("circle", { class: "fill", r: radius * share }));
    if (isSmall) return node;
    const subscribers = Math.max(0, row.clients - row.publishers);
    const name = row.broker.length > 9 ? `${row.broker.slice(0, 8)}…` : row.broker;
    node.append(drawn("text", { "text-anchor": "middle", y: -2, "font-weight": "600" }, name),
      drawn("text", { "text-anchor": "middle", y: 13 }, percent(row.load)),
      drawn("text", { class: "quiet", "text-anchor": "middle", y: radius + 15 }, `▲ ${row.publishers}  ▼ ${subscribers}`));
    return node;
  }

  // A client, or several, goes from one broker to another.
  move(source, target, text) {
    if (!this.at(source) || !this.at(target) || this.movers.childElementCount > 40) return;
    const dot = drawn("circle", { class: "mover", r: 8 }, drawn("title", {}, text));
    this.movers.append(dot);
    const start = performance.now(), lasting = 1600;
    const step = (now) => {
      const share = Math.min(1, (now - start) / lasting), a = this.at(source), b = this.at(target);
      if (share >= 1 || !a || !b) { dot.remove(); return; }
      dot.setAttribute("cx", a.x + (b.x - a.x) * share);
      dot.setAttribute("cy", a.y + (b.y - a.y) * share - Math.sin(Math.PI * share) * 40);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}
