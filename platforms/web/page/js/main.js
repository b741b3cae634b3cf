// Wires the page together: start, login, routes, sending, and what the feed brings.
import * as api from "./api.js";
import { $, announce, fillIcons, h, icon, newID, storage, toast } from "./dom.js";
import { Feed } from "./feed.js";
import { state } from "./state.js";
import { clearBox, compose, initComposer, loadDraft, problem } from "./composer.js";
import { drawerOpen, initSidebar, openDrawer, renderChats } from "./sidebar.js";
import { initThread, keepPlace, renderActivity, renderThread, toEnd } from "./thread.js";

const examples = ["write hello to notes.txt", "run ls", "search our chats for milk", "/help"];

// Start and login

async function start() {
  let boot;
  try {
    boot = await api.bootstrap();
  } catch (err) {
    if (err.status === 401) return showLogin();
    $("app").hidden = false;
    status("lost");
    if (err.status) toast(err.message, "bad");
    setTimeout(start, 3000);
    return;
  }
  $("login").hidden = true;
  $("app").hidden = false;
  state.limits = { text: boot.max_text, upload: boot.max_upload, files: boot.max_files };
  state.commands = boot.commands;
  state.epoch = api.cursor(boot.cursor).epoch;
  $("version").textContent = [boot.name, boot.version].filter(Boolean).join(" ");
  $("logout").hidden = !boot.locked;
  state.takeChats(boot);
  status("live");
  feed.start(boot.cursor);
  route();
}

function showLogin() {
  feed.stop();
  $("app").hidden = true;
  $("login").hidden = false;
  $("password").focus();
}

async function login(secret) {
  try {
    await api.login(secret);
    $("password").value = "";
    $("login-error").textContent = "";
    await start();
  } catch (err) {
    $("login-error").textContent = err.message;
    $("password").select();
  }
}

/** A failure of the server that is not about one message. */
function failed(err) {
  if (err.status === 401) showLogin();
  else toast(err.message, "bad");
}

// Routes: "#/c/<chat>" shows a chat, anything else a new one

function route() {
  const id = /^#\/c\/([\w-]{8,64})$/.exec(location.hash)?.[1] ?? null;
  state.current = id;
  loadDraft();
  renderChats();
  renderThread();
  if (id) open(id);
  if (!matchMedia("(pointer: coarse)").matches) $("text").focus();
  title();
}

async function open(id) {
  try {
    state.takeHistory(id, await api.history(id), true);
    look();
  } catch (err) {
    failed(err);
  }
}

function newChat() {
  openDrawer(false);
  if (location.hash === "#/" || location.hash === "") route();
  else location.hash = "#/";
}

let loadingOlder = false;

async function older() {
  const chat = state.chats.get(state.current);
  if (!chat?.loaded || !chat.more || loadingOlder) return;
  loadingOlder = true;
  $("older").textContent = "Loading…";
  try {
    const first = chat.sorted()[0]?.view.seq;
    const page = await api.history(chat.id, first);
    if (state.current === chat.id) keepPlace(() => state.takeHistory(chat.id, page, false));
  } catch (err) {
    failed(err);
  } finally {
    loadingOlder = false;
    $("older").textContent = "Load older messages";
  }
}

// Sending

function submit(text, files) {
  if (!state.current) {
    state.current = newID();
    history.pushState(null, "", `#/c/${state.current}`);
    storage.set("draft.new", undefined);
    state.chat(state.current).loaded = true;
  }
  const chat = state.chat(state.current);
  chat.title ||= text.trim().split("\n")[0].slice(0, 60) || files[0]?.name || "New chat";
  chat.at = Date.now();
  const o = { chat: chat.id, id: newID(), text, files, state: "sending", progress: 0, error: "" };
  state.outbox.push(o);
  deliver(o);
  toEnd();
}

async function deliver(o) {
  o.state = "sending";
  o.progress = 0;
  state.keepOutbox();
  state.changed("messages");
  state.changed("chats");
  try {
    const { message } = await api.send(o.chat, o.id, o.text, o.files, (p) => { o.progress = p; if (o.chat === state.current) renderThread(); });
    const chat = state.chat(o.chat);
    const answered = [...chat.messages.values()].some((m) => m.view.from === "agent" && m.view.seq > message.seq && !m.view.interim);
    if (!answered) chat.awaitUntil = Date.now() + 10_000;
    state.takeMessage(message, 0, state.epoch);
    state.outbox = state.outbox.filter((other) => other !== o);
    state.keepOutbox();
    state.changed("messages");
    state.changed("chats");
  } catch (err) {
    if (err.status === 401) showLogin();
    o.state = "failed";
    o.error = err.message;
    if (err.status === 413) { // trying again can't help: back into the box with it
      state.outbox = state.outbox.filter((other) => other !== o);
      if (o.chat === state.current) {
        compose(o.text, o.files);
        problem(err.message);
      } else state.outbox.push(o);
    }
    state.keepOutbox();
    state.changed("messages");
  }
}

function stop() {
  const chat = state.chats.get(state.current);
  if (!chat?.busy()) return false;
  submit("/stop", []);
  return true;
}

// What is done with messages

async function copy(text, el) {
  let ok = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // plain http, or refused: the old way
    const box = h("textarea", { class: "sr" });
    box.value = text;
    document.body.append(box);
    box.select();
    ok = document.execCommand("copy");
    box.remove();
  }
  if (!ok) return toast("The browser does not let this page copy.", "bad");
  const old = el.querySelector("svg");
  old.replaceWith(icon("check"));
  setTimeout(() => el.querySelector("svg")?.replaceWith(old), 1500);
  announce("Copied");
}

async function act(name, el, text) {
  const o = state.outbox.find((other) => other.id === el.dataset.id);
  switch (name) {
    case "copy": case "copy-code": return copy(text, el);
    case "again": return deliver(o);
    case "rewrite": case "discard":
      state.outbox = state.outbox.filter((other) => other !== o);
      state.keepOutbox();
      if (name === "rewrite") compose(o.text, o.files);
      state.changed("messages");
      return $("text").focus();
    case "resend":
      el.disabled = true;
      try {
        const { message } = await api.retry(state.current, Number(el.dataset.seq));
        state.takeMessage(message, state.chat(message.chat).messages.get(message.seq)?.n ?? 0, state.epoch);
        state.changed("messages");
      } catch (err) { failed(err); }
      el.disabled = false;
      return undefined;
    case "jump": return document.querySelector(`[data-seq="${el.dataset.seq}"]`)?.scrollIntoView({ block: "center" });
    case "click": return press(el);
  }
  return undefined;
}

async function press(el) {
  const all = el.closest(".choices").querySelectorAll("button");
  const enable = (on) => all.forEach((b) => { b.disabled = !on; });
  enable(false);
  el.classList.add("pressed");
  try {
    await api.click(state.current, { id: newID(), message: el.dataset.seq, data: el.dataset.press });
    // The answer comes as an edit of the message. Should none come, the buttons are to be had again.
    setTimeout(() => { enable(true); el.classList.remove("pressed"); }, 10_000);
  } catch (err) {
    enable(true);
    el.classList.remove("pressed");
    failed(err);
  }
}

// The feed

const feed = new Feed({
  event(kind, data, n, epoch) {
    switch (kind) {
      case "message": {
        const fresh = !state.chat(data.chat).messages.has(data.seq);
        if (!state.takeMessage(data, n, epoch, true)) return;
        if (data.from === "agent" && !data.interim && !data.progress) arrived(data, fresh);
        state.changed("chats");
        if (data.chat === state.current) state.changed("messages");
        return;
      }
      case "removed": return state.remove(data.chat, data.seq, n);
      case "typing":
        state.chat(data.chat).typingUntil = data.for_ms ? Date.now() + data.for_ms : 0;
        if (!data.for_ms) state.chat(data.chat).awaitUntil = 0;
        return renderActivity();
      case "clicked":
        if (data.text && data.chat === state.current) toast(data.text);
        return undefined;
      case "commands": state.commands = data; return undefined;
      case "reset": return reload();
    }
    return undefined;
  },
  status,
  async lost(connect) {
    try {
      await api.chats();
      connect();
    } catch (err) {
      if (err.status === 401) return showLogin();
      connect();
    }
    return undefined;
  },
});

/** What was missed can't be told one by one: load it. */
async function reload() {
  try {
    state.takeChats(await api.chats());
    if (state.current) await open(state.current);
  } catch (err) {
    failed(err);
  }
}

let missed = 0;

function arrived(view, fresh) {
  if (view.chat === state.current && !document.hidden) {
    look();
    announce(`${state.name}: ${view.text.slice(0, 300)}`);
  } else if (fresh || document.hidden) {
    missed++;
    title();
  }
}

/** The reader sees the current chat now. */
function look() {
  if (document.hidden || !state.current) return;
  state.markRead(state.current);
  missed = 0;
  title();
}

function title() {
  const chat = state.current ? state.chats.get(state.current) : null;
  document.title = `${missed ? `(${missed}) ` : ""}${chat?.title ? `${chat.title} · ` : ""}${state.name}`;
}

let lostTimer = 0;

function status(what) {
  clearTimeout(lostTimer);
  const el = $("status");
  if (what === "live") {
    el.hidden = true;
    return;
  }
  // A blink is not worth a word.
  lostTimer = setTimeout(() => { el.textContent = "Reconnecting…"; el.hidden = false; }, 300);
}

// Theme

const themes = ["system", "light", "dark"];

function setTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try { localStorage.setItem("herald.theme", name); } catch { /* storage is off: it holds until the reload */ }
  showTheme();
}

function showTheme() {
  const name = document.documentElement.dataset.theme ?? "system";
  $("theme-name").textContent = `Theme: ${name}`;
  document.querySelector("meta[name=theme-color]").content = getComputedStyle(document.body).backgroundColor;
}

// Wiring

let frame = 0;
const dirty = new Set();

state.addEventListener("change", (e) => {
  dirty.add(e.detail);
  if (document.hidden) return draw(); // a hidden page has no frames
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(draw);
  return undefined;
});

function draw() {
  if (dirty.has("chats")) renderChats();
  if (dirty.has("messages")) renderThread();
  dirty.clear();
  title();
}

fillIcons();
initSidebar({
  newChat,
  async allChats() {
    try { state.takeChats(await api.chats(1000)); } catch (err) { failed(err); }
  },
});
if (/Mac|iPhone|iPad/.test(navigator.platform)) document.querySelector("#new-chat kbd").textContent = "⌘ K";
initThread({ act, older });
initComposer(submit);
showTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
$("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "system";
  setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
});
$("examples").append(...examples.map((text) => h("button", { type: "button", text, onclick: () => submit(text, []) })));
$("stop").addEventListener("click", () => { stop(); $("text").focus(); });
$("login").addEventListener("submit", (e) => { e.preventDefault(); login($("password").value); });
$("logout").addEventListener("click", async () => {
  try { await api.logout(); } catch { /* the cookie ends by itself */ }
  clearBox();
  state.chats.clear();
  state.current = null;
  renderThread();
  showLogin();
});
addEventListener("hashchange", route);
addEventListener("popstate", () => { if ((/^#\/c\/([\w-]+)$/.exec(location.hash)?.[1] ?? null) !== state.current) route(); });
document.addEventListener("visibilitychange", look);
addEventListener("storage", (e) => { if (e.key === "herald.read") { state.read = storage.get("read", {}); renderChats(); } });
document.addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === "k") {
    e.preventDefault();
    newChat();
  } else if (e.key === "Escape" && !e.isComposing) {
    if (drawerOpen()) openDrawer(false);
    else if (stop()) e.preventDefault();
  }
});

state.loadOutbox();
const token = /^#token=(.+)$/.exec(location.hash)?.[1];
if (token) { // the address that the start prints: it logs in, and leaves no trace in the history
  history.replaceState(null, "", "#/");
  await login(decodeURIComponent(token));
} else {
  await start();
}
