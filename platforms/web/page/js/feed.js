// Follows the server's changes: one event stream, which connects again by itself and goes on where it was.
import { cursor } from "./api.js";

const kinds = ["message", "removed", "typing", "clicked", "commands", "reset"];
const silence = 50_000; // ms; the server pings every 20 s

export class Feed {
  /** handlers: event(kind, data, n, epoch), status("live" | "lost"), lost() when the server refuses the stream. */
  constructor(handlers) {
    this.handlers = handlers;
    this.after = "";
    this.source = null;
    this.delay = 1000;
    this.timer = 0;
    this.watch = setInterval(() => this.#look(), 10_000);
    this.channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("herald.feed") : null;
    // A browser opens six connections to a server and no more, over all tabs: a hidden tab makes room for
    // one that is looked at, and follows again when it is looked at itself.
    this.channel?.addEventListener("message", () => { if (document.hidden) this.#pause(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.after) this.#wake(); });
    addEventListener("online", () => { if (this.after && !this.#open()) this.#connect(); });
  }

  /** Follows from a cursor. */
  start(after) {
    this.after = after;
    this.#connect();
  }

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.after = "";
  }

  #open() { return this.source?.readyState === EventSource.OPEN; }

  #pause() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  #wake() {
    if (!this.source || this.source.readyState === EventSource.CLOSED) this.#connect();
    else this.#look();
  }

  #look() {
    if (this.source && this.#open() && Date.now() - this.heard > silence) this.#connect();
  }

  #connect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.channel?.postMessage("open");
    const source = new EventSource(`/api/chat/events?after=${encodeURIComponent(this.after)}`);
    this.source = source;
    this.heard = Date.now();
    source.addEventListener("open", () => {
      this.delay = 1000;
      this.heard = Date.now();
      this.handlers.status("live");
    });
    source.addEventListener("ping", () => { this.heard = Date.now(); });
    source.addEventListener("error", () => {
      if (source !== this.source) return;
      this.handlers.status("lost");
      if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
      this.timer = setTimeout(() => this.handlers.lost(() => this.#connect()), this.delay);
      this.delay = Math.min(this.delay * 2, 10_000);
    });
    for (const kind of kinds) {
      source.addEventListener(kind, (e) => {
        if (source !== this.source) return;
        this.heard = Date.now();
        this.after = e.lastEventId;
        const at = cursor(e.lastEventId);
        this.handlers.event(kind, JSON.parse(e.data), at.n, at.epoch);
      });
    }
  }
}
