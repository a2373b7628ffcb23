// Where brokers are drawn: places in a square from 0 to 1, from their names and links.

// A small tree in layers from its centre, a large one around its centre, anything else by springs.
export function layout(names, links) {
  const near = new Map(names.map((name) => [name, []]));
  for (const { one, other, kind } of links) {
    if (kind === "soft" || !near.has(one) || !near.has(other)) continue;
    near.get(one).push(other);
    near.get(other).push(one);
  }
  const edges = [...near.values()].reduce((sum, each) => sum + each.length, 0) / 2;
  const seen = new Set(), roots = [];
  for (const name of names) if (!seen.has(name)) roots.push(rooted(centre(name, near), near, seen));
  if (edges > names.length - roots.length) return fitted(springs(names, near));
  return fitted(names.length > 40 ? radial(roots) : layered(roots));
}

// Stretched to the square.
function fitted(places) {
  const xs = [...places.values()].map((place) => place.x), ys = [...places.values()].map((place) => place.y);
  const x = Math.min(...xs), y = Math.min(...ys), wide = Math.max(...xs) - x, high = Math.max(...ys) - y;
  for (const place of places.values()) {
    place.x = wide > 1e-6 ? (place.x - x) / wide : 0.5;
    place.y = high > 1e-6 ? (place.y - y) / high : 0.5;
  }
  return places;
}

function walk(roots, put) {
  let left = 0;
  const step = (node, from, level) => {
    put(node, from, level);
    let next = from;
    for (const child of node.children) {
      step(child, next, level + 1);
      next += child.leaves;
    }
  };
  for (const root of roots) {
    step(root, left, 0);
    left += root.leaves;
  }
}

function layered(roots) {
  const places = new Map();
  walk(roots, (node, from, level) => places.set(node.name, { x: from + node.leaves / 2, y: level }));
  return places;
}

function radial(roots) {
  const places = new Map(), leaves = roots.reduce((sum, root) => sum + root.leaves, 0);
  walk(roots, (node, from, level) => {
    const angle = (2 * Math.PI * (from + node.leaves / 2)) / leaves, far = roots.length > 1 ? level + 1 : level;
    places.set(node.name, { x: far * Math.cos(angle), y: far * Math.sin(angle) });
  });
  return places;
}

// Without recursion over the depth: a chain may have hundreds of brokers.
function rooted(name, near, seen) {
  const root = { name, children: [], leaves: 1 };
  const order = [root];
  seen.add(name);
  for (let index = 0; index < order.length; index++) {
    for (const each of near.get(order[index].name)) {
      if (seen.has(each)) continue;
      seen.add(each);
      const child = { name: each, children: [], leaves: 1 };
      order[index].children.push(child);
      order.push(child);
    }
  }
  for (const node of order.reverse()) {
    if (node.children.length) node.leaves = node.children.reduce((sum, child) => sum + child.leaves, 0);
  }
  return root;
}

function farthest(name, near) {
  const came = new Map([[name, null]]), order = [name];
  for (let index = 0; index < order.length; index++) {
    for (const each of near.get(order[index])) {
      if (!came.has(each)) { came.set(each, order[index]); order.push(each); }
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
  const places = names.map((_, index) => {
    const angle = (2 * Math.PI * index) / names.length;
    return { x: 500 + 330 * Math.cos(angle), y: 350 + 230 * Math.sin(angle) };
  });
  const number = new Map(names.map((name, index) => [name, index]));
  const linked = names.map((name) => new Set(near.get(name).map((each) => number.get(each))));
  const rest = 0.8 * Math.sqrt(700000 / names.length);
  for (let heat = 40; heat > 0.5; heat *= names.length > 150 ? 0.85 : 0.96) {
    const push = places.map(() => ({ x: 0, y: 0 }));
    for (let one = 0; one < places.length; one++) {
      for (let other = one + 1; other < places.length; other++) {
        const dx = places[one].x - places[other].x || 0.1, dy = places[one].y - places[other].y || 0.1;
        const far = Math.hypot(dx, dy);
        const force = ((rest * rest) / far - (linked[one].has(other) ? (far * far) / rest : 0)) / far;
        push[one].x += dx * force; push[one].y += dy * force;
        push[other].x -= dx * force; push[other].y -= dy * force;
      }
    }
    places.forEach((place, index) => {
      const by = push[index], size = Math.hypot(by.x, by.y) || 1, step = Math.min(size, heat) / size;
      place.x += by.x * step;
      place.y += by.y * step;
    });
  }
  return new Map(names.map((name, index) => [name, places[index]]));
}
