// Curves over time: a small SVG, with a key, and the value under the pointer.

import { drawn, element, moment } from "./text.js";

const WIDTH = 640, HEIGHT = 180, LEFT = 56, BOTTOM = 22, TOP = 8;

// Lines: [{name, values, look}], all over the times `at_s`.
export function curves(title, at_s, lines, show) {
  const box = element("section", { class: "card" }, element("h2", {}, title));
  if (at_s.length < 2) {
    box.append(element("p", { class: "empty" }, "Recorded from now on, while this page is open."));
    return box;
  }
  const svg = drawn("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": title });
  const all = lines.flatMap((line) => line.values).filter((value) => value !== null);
  const top = Math.max(1e-9, ...all) * 1.1;
  const first = at_s[0], last = at_s[at_s.length - 1];
  const x = (time) => LEFT + (WIDTH - LEFT - 8) * (time - first) / Math.max(1e-9, last - first);
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
  for (const share of [0, 0.5, 1]) {
    const value = (share * top) / 1.1;
    svg.append(drawn("line", { class: "axis", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
      drawn("text", { class: "quiet", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, show(value)));
  }
  svg.append(drawn("text", { class: "quiet", x: LEFT, y: HEIGHT - 6 }, moment(first)),
    drawn("text", { class: "quiet", x: WIDTH - 8, y: HEIGHT - 6, "text-anchor": "end" }, moment(last)));
  const usual = (last - first) / at_s.length;
  for (const line of lines) {
    let path = "", isOpen = false;
    line.values.forEach((value, index) => {
      const gap = index > 0 && at_s[index] - at_s[index - 1] > Math.max(15, 4 * usual);
      if (value === null) isOpen = false;
      else {
        path += `${isOpen && !gap ? "L" : "M"}${x(at_s[index]).toFixed(1)} ${y(value).toFixed(1)}`;
        isOpen = true;
      }
    });
    svg.append(drawn("path", { class: `one ${line.look}`, d: path || "M0 0" }));
  }
  const key = element("div", { class: "key" }, lines.map((line) => {
    const known = line.values.filter((value) => value !== null);
    const now = known.length ? show(known[known.length - 1]) : "–";
    return element("span", {}, element("i", { class: line.look }), `${line.name}: ${now}`);
  }));
  box.append(svg, key);
  return box;
}
