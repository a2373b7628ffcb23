// Numbers with units, and elements from data.  Text is set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function drawn(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "width%") made.style.width = `${value}%`;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

const STEPS = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];

export function number(value, unit = "") {
  if (value === null || value === undefined) return "–";
  const gap = unit ? " " : "";
  for (const [letter, size] of STEPS) {
    if (Math.abs(value) >= size) return `${digits(value / size)}${unit ? " " : ""}${letter}${unit}`;
  }
  return `${digits(value)}${gap}${unit}`;
}

function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

export const bytes = (value) => number(value, "B");
export const byteRate = (value) => number(value, "B/s");
export const rate = (value) => number(value, "/s");
export const percent = (value) =>
  value === null || value === undefined ? "–" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 1e-3) return `${digits(value * 1e6)} µs`;
  if (value >= 7200) return `${digits(value / 3600)} h`;
  return value < 1 ? `${digits(value * 1e3)} ms` : `${digits(value)} s`;
}

export function clock(at_s) {
  return new Date(at_s * 1000).toLocaleTimeString([], { hour12: false });
}

// A time of day; of a simulation, whose clock begins at 0, seconds.
export const moment = (at_s) => (at_s < 1e8 ? `${at_s.toFixed(1)} s` : clock(at_s));

export function bar(value) {
  const share = Math.min(1, Math.max(0, value || 0));
  return element("span", { class: "bar", "aria-hidden": "true" },
    element("i", { class: share > 0.9 ? "high" : "", "width%": 100 * share }));
}

export const STATES = { serving: "good", draining: "warn", joining: "warn", "not ready": "warn", silent: "bad" };

export function state(word) {
  return element("span", { class: `pill ${STATES[word] || ""}` }, word);
}

export function table(columns, rows) {
  // Columns: [heading, isNumber]; rows: lists of cells, or {cells, ...attributes}.
  const head = element("tr", {}, columns.map(([text, isNumber]) =>
    element("th", { class: isNumber ? "number" : "", scope: "col" }, text)));
  const body = rows.map((row) => {
    const { cells, ...attributes } = Array.isArray(row) ? { cells: row } : row;
    return element("tr", attributes, cells.map((cell, index) =>
      element("td", { class: columns[index][1] ? "number" : "" }, cell)));
  });
  return element("div", { class: "scroll" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, body)));
}

export const empty = (text) => element("p", { class: "empty" }, text);

export function heading(title, text, ...tools) {
  return element("div", { class: "head" }, element("h1", {}, title), element("p", {}, text), ...tools);
}

export function facts(pairs) {
  return element("dl", { class: "facts" },
    pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}
