// Requests to the endpoint. The token of a server that asks for one comes with the link and stays in this tab.
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("token")) {
  sessionStorage.setItem("token", given.get("token"));
  given.delete("token");
  history.replaceState(null, "", `#${given}`);
}
const token = sessionStorage.getItem("token");
const headers = { ...(token ? { authorization: `Bearer ${token}` } : {}) };

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function checked(request) {
  let answer;
  try {
    answer = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("lost", 0);
  }
  if (!answer.ok) throw new Refused((await answer.json().catch(() => ({}))).error ?? answer.statusText, answer.status);
  return answer;
}

const at = (path) => new URL(`v1/${path}`, import.meta.url); // also below the path of a proxy

export const get = async (path) => (await checked(fetch(at(path), { headers }))).json();

const post = (path, question, signal) =>
  checked(fetch(at(path), {
    method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(question), signal,
  }));

export const ask = async (path, question) => (await post(path, question)).json();

// Call `each` with every line of an answer as it comes.
export async function stream(path, question, each, signal) {
  const reader = (await post(path, question, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) each(JSON.parse(line));
  }
}

// Ask for the latest input only: while a request is out, further ones replace each other.
export function latest(work) {
  let running = false, next = null;
  return async function run(...input) {
    if (running) { next = input; return; }
    running = true;
    try { await work(...input); } finally {
      running = false;
      if (next) { const again = next; next = null; run(...again); }
    }
  };
}
