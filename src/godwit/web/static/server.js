// Calls to the server of this page, and its streams of events.
// The secret is asked for when a page on another machine is refused; it stays in this window.

let secret = "";

function headers(more = {}) {
  return secret ? { ...more, authorization: `Bearer ${secret}` } : more;
}

async function answered(response) {
  if (response.status === 403 && !secret) {
    secret = window.prompt("This network asks for its secret:") || "";
    if (secret) throw new Error("try again");
  }
  const body = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(body.where ? `${body.error} (${body.where})` : body.error);
  return body;
}

export async function get(path, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  return answered(await fetch(query ? `${path}?${query}` : path, { headers: headers() }));
}

export async function post(path, fields) {
  return answered(await fetch(path, {
    method: "POST", body: JSON.stringify(fields),
    headers: headers({ "content-type": "application/json" }),
  }));
}

// A stream of server-sent events, over fetch, because EventSource sends no secret.
// `on` has a function for each kind of event.  It ends when `signal` says so, or with an error.
export async function listen(path, on, signal) {
  const response = await fetch(path, { headers: headers(), signal });
  if (!response.ok) await answered(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the server has closed the stream");
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const each of events) {
      const kind = /^event: (.*)$/m.exec(each);
      const data = /^data: (.*)$/m.exec(each);
      if (kind && data && on[kind[1]]) on[kind[1]](JSON.parse(data[1]));
    }
  }
}
