// The map of the overlay: brokers sized by load, links by rate, moves as dots that travel.

import { byteRate, drawn, percent } from "./text.js";

const SIZE = 1000, MARGIN = 90;

export class OverlayMap {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.places = new Map();
    this.shape = "";
    this.svg = drawn("svg", { class: "map", viewBox: `0 0 ${SIZE} ${SIZE * 0.7}`, role: "group",
      "aria-label": "Map of brokers and links" });
    this.links = drawn("g");
    this.nodes = drawn("g");
    this.movers = drawn("g");
    this.svg.append(this.links, this.nodes, this.movers);
  }

  show(overview, chosen) {
    const names = overview.brokers.map((row) => row.broker);
    const shape = JSON.stringify([names, overview.links.map((link) => [link.one, link.other])]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.places = layout(names, overview.links);
    }
    const isMany = names.length > 60;
    const most = Math.max(1, ...overview.links.map((link) => link.bytes_per_s));
    this.links.replaceChildren(...overview.links.flatMap((link) => this.link(link, most, isMany)));
    const focused = document.activeElement?.dataset?.broker;
    this.nodes.replaceChildren(...overview.brokers.map((row) => this.node(row, chosen, isMany)));
    if (focused) this.nodes.querySelector(`[data-broker="${CSS.escape(focused)}"]`)?.focus();
  }

  link(link, most, isMany) {
    const a = this.places.get(link.one), b = this.places.get(link.other);
    if (!a || !b) return [];
    const isUp = link.status === "up";
    const made = [drawn("line", { class: isUp ? "link" : "link down", x1: a.x, y1: a.y, x2: b.x, y2: b.y,
      "stroke-width": isUp ? 1.5 + 9 * Math.sqrt(link.bytes_per_s / most) : 2 },
    drawn("title", {}, `${link.one} – ${link.other}: ${link.status}, ${byteRate(link.bytes_per_s)}`))];
    if (!isMany) {
      const text = isUp ? byteRate(link.bytes_per_s) : link.status;
      made.push(drawn("text", { class: "quiet", x: (a.x + b.x) / 2 + 6, y: (a.y + b.y) / 2 - 6 }, text));
    }
    return made;
  }

  node(row, chosen, isMany) {
    const place = this.places.get(row.broker);
    const radius = (isMany ? 7 : 26) + (isMany ? 14 : 30) * Math.sqrt(Math.min(1, row.load));
    const kind = row.state === "serving" ? "" : row.state === "draining" || row.state === "joining" ? "draining" : "trouble";
    const choose = () => this.onChoose(row.broker);
    const text = `${row.broker}: ${row.state}, load ${percent(row.load)}, ${row.clients} clients`;
    const node = drawn("g", { class: `node ${kind} ${row.load > 0.9 ? "high" : ""} ${row.broker === chosen ? "chosen" : ""}`, tabindex: 0,
      role: "button", "aria-label": text, "data-broker": row.broker, onclick: choose,
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } },
      transform: `translate(${place.x} ${place.y})` },
    drawn("title", {}, text),
    drawn("circle", { class: "body", r: radius }),
    drawn("circle", { class: "fill", r: radius * Math.sqrt(Math.min(1, row.load)) }));
    if (!isMany || row.broker === chosen) {
      node.append(drawn("text", { "text-anchor": "middle", y: -3, "font-weight": "600" }, row.broker),
        drawn("text", { "text-anchor": "middle", y: 14 }, percent(row.load)));
      const subscribers = Math.max(0, row.clients - row.publishers);
      node.append(drawn("text", { class: "quiet", "text-anchor": "middle", y: radius + 18 },
        `▲ ${row.publishers}  ▼ ${subscribers}`));
    }
    return node;
  }

  // A client, or several, goes from one broker to another.
  move(source, target, text) {
    const a = this.places.get(source), b = this.places.get(target);
    if (!a || !b || this.movers.childElementCount > 40) return;
    const dot = drawn("circle", { class: "mover", r: 8, cx: a.x, cy: a.y }, drawn("title", {}, text));
    this.movers.append(dot);
    const start = performance.now(), lasting = 1600;
    const step = (now) => {
      const share = Math.min(1, (now - start) / lasting);
      const bow = Math.sin(Math.PI * share) * 40;
      dot.setAttribute("cx", a.x + (b.x - a.x) * share);
      dot.setAttribute("cy", a.y + (b.y - a.y) * share - bow);
      if (share < 1) requestAnimationFrame(step);
      else dot.remove();
    };
    requestAnimationFrame(step);
  }
}

// A tree from its centre outwards, in layers from the top; anything else by springs.
function layout(names, links) {
  const near = new Map(names.map((name) => [name, []]));
  for (const { one, other } of links) {
    near.get(one)?.push(other);
    near.get(other)?.push(one);
  }
  return links.length <= names.length - 1 ? layered(names, near) : springs(names, near);
}

function layered(names, near) {
  const places = new Map();
  const roots = [];
  const seen = new Set();
  for (const name of names) {
    if (!seen.has(name)) roots.push(rooted(centre(name, near), near, seen));
  }
  const width = roots.reduce((sum, root) => sum + root.leaves, 0);
  const depth = Math.max(...roots.map((root) => root.depth), 1);
  let left = 0;
  const put = (node, from, level) => {
    const share = (from + node.leaves / 2) / width;
    places.set(node.name, { x: MARGIN / 2 + share * (SIZE - MARGIN), y: MARGIN + (level / Math.max(1, depth - 1)) * (SIZE * 0.7 - 2 * MARGIN) });
    let next = from;
    for (const child of node.children) {
      put(child, next, level + 1);
      next += child.leaves;
    }
  };
  for (const root of roots) {
    put(root, left, 0);
    left += root.leaves;
  }
  return places;
}

function rooted(name, near, seen) {
  seen.add(name);
  const children = near.get(name).filter((each) => !seen.has(each) && near.has(each))
    .map((each) => (seen.has(each) ? null : rooted(each, near, seen))).filter(Boolean);
  return { name, children, leaves: Math.max(1, children.reduce((sum, child) => sum + child.leaves, 0)),
    depth: 1 + Math.max(0, ...children.map((child) => child.depth)) };
}

function farthest(name, near) {
  const came = new Map([[name, null]]);
  let order = [name];
  for (let index = 0; index < order.length; index++) {
    for (const each of near.get(order[index])) {
      if (!came.has(each) && near.has(each)) { came.set(each, order[index]); order.push(each); }
    }
  }
  return { last: order[order.length - 1], came };
}

function centre(name, near) {
  const { last } = farthest(name, near);
  const { last: end, came } = farthest(last, near);
  const way = [];
  for (let each = end; each !== null; each = came.get(each)) way.push(each);
  return way[Math.floor(way.length / 2)];
}

function springs(names, near) {
  const places = new Map(names.map((name, index) => {
    const angle = (2 * Math.PI * index) / names.length;
    return [name, { x: SIZE / 2 + 330 * Math.cos(angle), y: SIZE * 0.35 + 230 * Math.sin(angle) }];
  }));
  const rest = 0.8 * Math.sqrt((SIZE * SIZE * 0.7) / names.length);
  for (let heat = 40; heat > 0.5; heat *= names.length > 150 ? 0.85 : 0.96) {
    const push = new Map(names.map((name) => [name, { x: 0, y: 0 }]));
    names.forEach((one, index) => {
      for (const other of names.slice(index + 1)) {
        const a = places.get(one), b = places.get(other);
        const dx = a.x - b.x || 0.1, dy = a.y - b.y || 0.1, far = Math.hypot(dx, dy);
        let force = (rest * rest) / far;
        if (near.get(one).includes(other)) force -= (far * far) / rest;
        push.get(one).x += (dx / far) * force; push.get(one).y += (dy / far) * force;
        push.get(other).x -= (dx / far) * force; push.get(other).y -= (dy / far) * force;
      }
    });
    for (const name of names) {
      const by = push.get(name), size = Math.hypot(by.x, by.y) || 1, place = places.get(name);
      place.x = Math.min(SIZE - MARGIN, Math.max(MARGIN, place.x + (by.x / size) * Math.min(size, heat)));
      place.y = Math.min(SIZE * 0.7 - MARGIN, Math.max(MARGIN, place.y + (by.y / size) * Math.min(size, heat)));
    }
  }
  return places;
}
