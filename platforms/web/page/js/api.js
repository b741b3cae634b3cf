// Talks to the server. Every failure is a Failure with a sentence for the person.

export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const base = "/api/chat";
const unreachable = "Herald can't be reached. Your message is kept here.";

async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(base + path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch {
    throw new Failure(0, "network", unreachable);
  }
  return read(answer.status, await answer.text());
}

function read(status, text) {
  let value = null;
  try { value = text ? JSON.parse(text) : null; } catch { /* not ours: a proxy's page */ }
  if (status >= 200 && status < 300) return value;
  const error = value?.error;
  throw new Failure(status, error?.code ?? "http", error?.message ?? `The server answered with ${status}.`);
}

const chat = (id) => `/chats/${encodeURIComponent(id)}`;

export const login = (password) => call("POST", "/login", { password });
export const logout = () => call("POST", "/logout", {});
export const bootstrap = () => call("GET", "/bootstrap");
export const chats = (limit = 0) => call("GET", `/chats${limit ? `?limit=${limit}` : ""}`);
export const history = (id, before = 0) => call("GET", `${chat(id)}/messages${before ? `?before=${before}` : ""}`);
export const retry = (id, seq) => call("POST", `${chat(id)}/messages/${seq}/retry`, {});
export const click = (id, press) => call("POST", `${chat(id)}/clicks`, press);

/** Sends a message. progress is called with a share of 1 while files go up. */
export function send(chatID, id, text, files, progress) {
  const message = JSON.stringify({ id, text });
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", base + chat(chatID) + "/messages");
    xhr.addEventListener("load", () => {
      try { resolve(read(xhr.status, xhr.responseText)); } catch (err) { reject(err); }
    });
    for (const name of ["error", "abort", "timeout"]) {
      xhr.addEventListener(name, () => reject(new Failure(0, "network", unreachable)));
    }
    if (!files.length) {
      xhr.setRequestHeader("Content-Type", "application/json");
      xhr.send(message);
      return;
    }
    xhr.upload.addEventListener("progress", (e) => { if (e.lengthComputable) progress(e.loaded / e.total); });
    const form = new FormData();
    form.append("message", message);
    for (const f of files) form.append("file", f, f.name);
    xhr.send(form);
  });
}

/** Parses "epoch-number". */
export function cursor(text) {
  const cut = (text ?? "").lastIndexOf("-");
  return { epoch: text.slice(0, cut), n: Number(text.slice(cut + 1)) };
}
