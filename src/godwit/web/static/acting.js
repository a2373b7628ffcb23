// Actions: the server says what would be done, you confirm, the server says what was done.

import { post } from "./server.js";
import { element } from "./text.js";

const dialog = () => document.getElementById("dialog");

export function close() {
  if (dialog().open) dialog().close();
}

function fill(title, ...parts) {
  dialog().replaceChildren(element("h2", { id: "dialog-title" }, title), ...parts);
  if (!dialog().open) dialog().showModal();
}

const buttons = (...made) => element("div", { class: "row" }, made);
const cancel = (text) => element("button", { type: "button", onclick: close }, text);
const lines = (says) => element("ul", {}, says.map((line) => element("li", {}, line)));

// Shows a dialog with fields, if there are some, and then the account of the server.
// `complete` makes the request from what was given.
export async function act(title, request, fields = [], complete = (made) => made) {
  if (fields.length) {
    const inputs = Object.fromEntries(fields.map(({ name, make }) => [name, make()]));
    const next = element("button", { class: "main", type: "button", onclick: () => {
      const given = Object.fromEntries(fields.map(({ name, read }) => [name, read(inputs[name])]));
      preview(title, complete({ ...request, ...given }));
    } }, "Show what it would do");
    fill(title, ...fields.map(({ name, label }) => element("label", {}, label, inputs[name])),
      buttons(cancel("Cancel"), next));
    return;
  }
  await preview(title, request);
}

async function preview(title, request) {
  fill(title, element("p", { class: "soft" }, "Asking what it would do ..."));
  try {
    const would = await post("/api/actions", { ...request, dry_run: true });
    const sure = element("button", { class: "danger", type: "button", id: "confirm",
      onclick: () => carryOut(title, request) }, "Do it");
    fill(title, lines(would.says), buttons(cancel("Cancel"), sure));
    sure.focus();
  } catch (error) {
    failed(title, error);
  }
}

async function carryOut(title, request) {
  fill(title, element("p", { class: "soft" }, "Working ... Closing this window does not stop it."));
  try {
    const done = await post("/api/actions", { ...request, dry_run: false });
    const more = done.change ? [element("p", { class: "soft" },
      `The coordinator carries it out as change ${done.change}: see Moves and decisions.`)] : [];
    fill(done.is_done ? `${title}: done` : title, lines(done.says), ...more, buttons(cancel("Close")));
    dialog().dataset.account = done.says.join("\n");
  } catch (error) {
    failed(title, error);
  }
}

function failed(title, error) {
  fill(title, element("p", { class: "no" }, String(error.message || error)), buttons(cancel("Close")));
}

export function chooser(names) {
  return () => element("select", { class: "wide" }, names.map((name) => element("option", { value: name }, name)));
}

export function keys() {
  fill("Keys", element("dl", { class: "facts" }, [
    ["1 – 8", "the views"], ["/", "the first field of a view"], ["t", "light or dark"], ["Esc", "closes a window"],
    ["Tab, Enter", "walk over the map and the tables, and choose"],
  ].flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)])), buttons(cancel("Close")));
}
