// The messages of the chat that is shown, and where it is scrolled to.
import { $, h } from "./dom.js";
import { state } from "./state.js";
import { updateMessage, updateOutgoing } from "./message.js";

const near = 120; // px from the end that still count as the end
const days = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

let shown = null; // the chat whose messages stand in the list
let pinned = true; // the reader is at the end and stays there

const scroller = () => $("scroller");
const atEnd = () => scroller().scrollHeight - scroller().scrollTop - scroller().clientHeight < near;

export function toEnd(smooth = false) {
  pinned = true;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  scroller().scrollTo({ top: scroller().scrollHeight, behavior: smooth && !calm ? "smooth" : "instant" });
  $("to-end").hidden = true;
}

/** The rows of the chat, in order: separators, messages, and what is on its way. */
function rows(chat) {
  const out = [];
  const list = chat ? chat.sorted() : [];
  const onWay = state.outbox.filter((o) => o.chat === chat?.id);
  const mine = new Set(onWay.map((o) => o.id));
  let lastAgent = 0;
  for (const m of list) if (m.view.from === "agent" && !m.view.progress) lastAgent = m.view.seq;
  let day = "";
  let previous = null;
  for (const { view } of list) {
    if (view.pending && mine.has(view.client)) continue;
    const d = new Date(view.at).toDateString();
    if (d !== day) {
      if (day || d !== new Date().toDateString()) out.push({ key: `d${d}`, day: view.at });
      day = d;
    }
    out.push({
      key: view.client ? `c${view.client}` : `s${view.seq}`,
      view,
      opts: { superseded: view.seq < lastAgent, quote: Boolean(view.reply) && view.reply.seq !== previous },
    });
    if (view.from === "user") previous = view.seq;
  }
  for (const o of onWay) out.push({ key: `c${o.id}`, outgoing: o });
  return out;
}

export function renderThread() {
  const chat = state.current ? state.chats.get(state.current) : null;
  const list = $("messages");
  const fresh = shown !== state.current;
  if (fresh) {
    list.replaceChildren();
    shown = state.current;
    pinned = true;
  }
  const have = new Map([...list.children].map((el) => [el.dataset.key, el]));
  const wanted = rows(chat);
  let after = null;
  for (const row of wanted) {
    let el = have.get(row.key);
    if (!el) el = h("li", { data: { key: row.key } });
    have.delete(row.key);
    if (row.day) {
      el.className = "day";
      el.textContent = days.format(new Date(row.day));
    } else if (row.outgoing) updateOutgoing(el, row.outgoing);
    else updateMessage(el, row.view, row.opts);
    const place = after ? after.nextSibling : list.firstChild;
    if (place !== el) list.insertBefore(el, place);
    after = el;
  }
  for (const el of have.values()) el.remove();

  $("older").hidden = !chat?.more;
  $("empty").hidden = !(wanted.length === 0 && (!chat || chat.loaded || !state.current));
  $("title").textContent = chat?.title || "New chat";
  renderActivity();
  if (pinned) toEnd();
  else $("to-end").hidden = atEnd();
}

let timer = 0;

/** Typing dots and the stop button. They end by time, so they are looked at again. */
export function renderActivity() {
  const chat = state.current ? state.chats.get(state.current) : null;
  const now = Date.now();
  const busy = Boolean(chat?.busy(now));
  const last = chat?.sorted().at(-1)?.view;
  const streaming = last?.from === "agent" && last.interim && !last.progress;
  const dots = busy && !streaming;
  if ($("typing").hidden === dots) {
    $("typing").hidden = !dots;
    if (pinned && dots) toEnd();
  }
  $("stop").hidden = !busy;
  clearTimeout(timer);
  if (busy) timer = setTimeout(renderActivity, 500);
}

/** Keeps what is read in place while older messages come in above it. */
export function keepPlace(change) {
  const el = scroller();
  const below = el.scrollHeight - el.scrollTop;
  pinned = false;
  change();
  renderThread();
  el.scrollTop = el.scrollHeight - below;
}

export function initThread({ act, older }) {
  scroller().addEventListener("scroll", () => {
    pinned = atEnd();
    $("to-end").hidden = pinned;
  }, { passive: true });
  new ResizeObserver(() => { if (pinned) toEnd(); }).observe(scroller());
  new ResizeObserver(() => { if (pinned) toEnd(); }).observe($("messages"));
  $("to-end").addEventListener("click", () => toEnd(true));
  $("older").addEventListener("click", older);
  new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) older(); }, { root: scroller(), rootMargin: "200px" }).observe($("older"));
  $("messages").addEventListener("click", (e) => {
    const code = e.target.closest(".code-copy");
    if (code) return act("copy-code", code, code.closest(".code").querySelector("pre").textContent);
    const el = e.target.closest("[data-action]");
    if (el) act(el.dataset.action, el, el.closest(".msg").copyText);
  });
}
