// What the page knows: the chats, their messages, and the messages that are on their way. It knows no
// element; whoever shows something listens for "change".
import { cursor } from "./api.js";
import { storage } from "./dom.js";

class Chat {
  constructor(id) {
    this.id = id;
    this.title = "";
    this.preview = "";
    this.at = 0; // ms
    this.seq = 0;
    this.from = "";
    this.messages = new Map(); // seq to { view, n, heard }
    this.gone = new Map(); // seq of a deleted message to the number of its removal
    this.loaded = false;
    this.more = false;
    this.typingUntil = 0;
    this.awaitUntil = 0; // an answer is expected until then
  }

  /** The messages in order. */
  sorted() { return [...this.messages.values()].sort((a, b) => a.view.seq - b.view.seq); }

  /** True while an answer is being made, as far as can be told from here. */
  busy(now = Date.now()) {
    if (this.typingUntil > now || this.awaitUntil > now) return true;
    const last = this.sorted().at(-1);
    return Boolean(last && last.view.from === "agent" && last.view.interim && last.heard && now - last.heard < 20_000);
  }
}

export const state = Object.assign(new EventTarget(), {
  name: document.documentElement.dataset.name,
  chats: new Map(),
  more: false, // there are chats that are not in the list
  current: null, // a chat id; null is a chat that has no message yet
  commands: [],
  limits: { text: 1 << 20, upload: 128 << 20, files: 10 },
  epoch: "",
  outbox: [], // { chat, id, text, files, lost, state, progress, error }
  read: storage.get("read", {}),

  chat(id) {
    if (!this.chats.has(id)) this.chats.set(id, new Chat(id));
    return this.chats.get(id);
  },

  changed(what) { this.dispatchEvent(new CustomEvent("change", { detail: what })); },

  /** Chats that have something in them, newest first. */
  listed() {
    return [...this.chats.values()].filter((c) => c.seq > 0 || this.outbox.some((o) => o.chat === c.id)).sort((a, b) => b.at - a.at || b.seq - a.seq);
  },

  /** Takes a list of chats from the server. */
  takeChats({ chats, more }) {
    this.more = more;
    for (const v of chats) {
      const c = this.chat(v.id);
      if (v.seq < c.seq) continue;
      Object.assign(c, { title: v.title, preview: v.preview, from: v.from, seq: v.seq, at: Date.parse(v.at) });
      if (!(v.id in this.read)) this.read[v.id] = v.seq;
    }
    this.changed("chats");
  },

  /** Takes one message; an older state of one that is known changes nothing. */
  takeMessage(view, n, epoch, live = false) {
    if (epoch !== this.epoch) this.newEpoch(epoch);
    const c = this.chat(view.chat);
    const known = c.messages.get(view.seq);
    if (known && known.n > n || c.gone.get(view.seq) > n) return false;
    c.messages.set(view.seq, { view, n, heard: live ? Date.now() : 0 });
    if (view.client && !view.pending) this.outbox = this.outbox.filter((o) => !(o.chat === view.chat && o.id === view.client));
    if (view.seq >= c.seq) {
      Object.assign(c, { seq: view.seq, at: Date.parse(view.at), from: view.from, preview: view.text.slice(0, 120) });
      if (view.title) c.title = view.title;
      if (live && view.from === "agent" && !view.progress && !view.interim) { c.awaitUntil = 0; c.typingUntil = 0; }
    }
    return true;
  },

  /** Takes a page of a chat. fresh says that it is the newest page and replaces what was known. */
  takeHistory(id, page, fresh) {
    const at = cursor(page.cursor);
    const c = this.chat(id);
    if (at.epoch !== this.epoch) this.newEpoch(at.epoch);
    if (fresh) {
      for (const [seq, known] of c.messages) if (known.n <= at.n) c.messages.delete(seq);
      c.loaded = true;
      c.typingUntil = page.typing ? Date.now() + 5000 : 0;
    }
    for (const view of page.messages) this.takeMessage(view, at.n, at.epoch);
    if (fresh || page.messages.length) c.more = page.more;
    this.changed("messages");
  },

  /** The server was started anew: numbers of before say nothing about those of now. */
  newEpoch(epoch) {
    this.epoch = epoch;
    for (const c of this.chats.values()) {
      c.gone.clear();
      for (const m of c.messages.values()) m.n = 0;
    }
  },

  remove(id, seq, n) {
    this.chat(id).messages.delete(seq);
    this.chat(id).gone.set(seq, n);
    this.changed("messages");
  },

  /** True when the chat has something that was not looked at. */
  unread(c) { return c.from === "agent" && c.id in this.read && c.seq > this.read[c.id]; },

  markRead(id) {
    const c = this.chats.get(id);
    if (!c || this.read[id] === c.seq) return;
    this.read[id] = c.seq;
    storage.set("read", this.read);
    this.changed("chats");
  },

  /** Keeps what is not sent over a reload; files can't be kept. */
  keepOutbox() {
    const kept = this.outbox.map(({ chat, id, text, files, lost }) => ({ chat, id, text, lost: lost || files.length > 0 }));
    storage.set("outbox", kept.length ? kept : undefined);
  },

  loadOutbox() {
    for (const o of storage.get("outbox", [])) {
      this.outbox.push({ ...o, files: [], state: "failed", progress: 0, error: "This message was not sent." });
      const c = this.chat(o.chat);
      c.title ||= o.text.slice(0, 60) || "New chat";
    }
  },
});
