// One message as an element. An element is changed in place, so that a growing answer doesn't flicker and
// what is selected or opened stays so.
import { h, icon, size } from "./dom.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Adds to rendered Markdown what the page has beyond it: a head with a copy button on code. */
function decorate(root) {
  for (const pre of root.querySelectorAll("pre")) {
    const lang = pre.querySelector("code")?.className.match(/language-(\S+)/)?.[1] ?? "";
    const box = h("div", { class: "code" }, h("div", { class: "code-head" },
      h("span", { text: lang || "text" }),
      h("button", { type: "button", class: "code-copy", "aria-label": "Copy code" }, icon("copy"), h("span", { text: "Copy" }))));
    pre.replaceWith(box);
    pre.tabIndex = 0;
    box.append(pre);
  }
  for (const table of root.querySelectorAll("table")) {
    const box = h("div", { class: "table", tabindex: "0" });
    table.replaceWith(box);
    box.append(table);
  }
  for (const box of root.querySelectorAll("input[type=checkbox]")) box.setAttribute("aria-label", "task");
}

/** Makes el's children those of the HTML, keeping the ones that are the same from the start. */
function morph(el, html) {
  const t = document.createElement("template");
  t.innerHTML = html; // rendered by the server, which lets no script, handler or foreign address through
  decorate(t.content);
  const next = [...t.content.childNodes];
  let same = 0;
  while (same < next.length && same < el.childNodes.length && el.childNodes[same].isEqualNode(next[same])) same++;
  while (el.childNodes.length > same) el.lastChild.remove();
  el.append(...next.slice(same));
}

function fileCard(f) {
  if (f.kind === "image") {
    const img = h("img", { src: f.url, alt: f.name, loading: "lazy" });
    img.addEventListener("error", () => img.closest(".thumb")?.replaceWith(plainCard(f)));
    return h("a", { class: "thumb", href: f.url, target: "_blank", rel: "noopener", title: f.name }, img);
  }
  if (f.kind === "audio" || f.kind === "voice") {
    return h("div", { class: "player" }, h("audio", { controls: true, preload: "metadata", src: f.url, "aria-label": f.name }), plainCard(f));
  }
  if (f.kind === "video") {
    return h("div", { class: "player" }, h("video", { controls: true, preload: "metadata", playsinline: true, src: f.url, "aria-label": f.name }), plainCard(f));
  }
  return plainCard(f);
}

function plainCard(f) {
  return h("a", { class: "file", href: f.url, download: f.name }, icon("file"),
    h("span", { class: "file-name", text: f.name }), h("span", { class: "file-size", text: size(f.size) }), icon("download"));
}

function filesOf(list) {
  const box = h("div", { class: "files" });
  for (const f of list) {
    box.append(fileCard(f));
    if (f.note) box.append(h("p", { class: "caption", text: f.note }));
  }
  return box;
}

function buttonsOf(view) {
  const box = h("div", { class: "choices" });
  for (const row of view.buttons) {
    box.append(h("div", { class: "choice-row" }, ...row.map((b) => h("button", {
      type: "button", class: `choice ${b.style ?? ""}`, text: b.label, data: { action: "click", press: b.data, seq: view.seq },
    }))));
  }
  return box;
}

function action(name, label, glyph, data = {}, named = false) {
  return h("button", {
    type: "button", class: named ? "act named" : "act", title: label, "aria-label": label, data: { action: name, ...data },
  }, icon(glyph), named ? label : null);
}

/** A message of the server. opts: superseded (a newer one of the agent follows), quote (show what it answers). */
export function updateMessage(el, view, opts) {
  const mark = `${opts.superseded} ${opts.quote}`;
  if (el.view === view && el.mark === mark) return el; // the state keeps a view until there is a newer one
  el.view = view;
  el.mark = mark;
  const light = view.progress || (view.interim && opts.superseded);
  const wanted = light ? "progress" : view.from;
  if (el.dataset.kind !== wanted) {
    el.dataset.kind = wanted;
    el.replaceChildren();
  }
  el.dataset.seq = view.seq;
  el.className = `msg ${view.from} ${light ? "light" : ""} ${view.interim && !opts.superseded ? "interim" : ""} ${view.pending ? "failed" : ""}`;
  el.copyText = view.text;
  if (light) progress(el, view, opts);
  else if (view.from === "user") userMessage(el, view);
  else agentMessage(el, view, opts);
  return el;
}

function agentMessage(el, view, opts) {
  let body = el.querySelector(":scope > .body");
  if (!body) {
    body = h("div", { class: "body" });
    el.replaceChildren(h("span", { class: "sr", text: "Answer:" }), body);
  }
  morph(body, view.html ?? "");
  for (const old of el.querySelectorAll(":scope > .quote, :scope > .files, :scope > .choices, :scope > .meta")) old.remove();
  if (view.reply && opts.quote) body.before(h("div", { class: "quote", text: view.reply.text, data: { action: "jump", seq: view.reply.seq } }));
  if (view.files?.length) el.append(filesOf(view.files));
  if (view.buttons?.length) el.append(buttonsOf(view));
  el.append(meta(view, !view.interim && action("copy", "Copy message", "copy")));
}

function userMessage(el, view) {
  const text = view.text.trim();
  const command = /^\/\w+\S*$/.test(text);
  el.replaceChildren(
    h("span", { class: "sr", text: "You wrote:" }),
    ...(view.files?.length ? [filesOf(view.files)] : []),
    ...(text ? [h("div", { class: command ? "bubble command" : "bubble", text: view.text })] : []),
    view.pending ? failure("Not delivered.", [action("resend", "Retry", "retry", { seq: view.seq }, true)]) : meta(view, action("copy", "Copy message", "copy"), icon("check")),
  );
}

function progress(el, view, opts) {
  const lines = view.text.trim().split("\n").filter((l) => l.trim());
  let details = el.querySelector("details");
  if (!details) {
    details = h("details", {}, h("summary", {}, h("span", { class: "pulse", "aria-hidden": "true" }), h("span", { class: "last" }), h("span", { class: "count" }), icon("caret")), h("div", { class: "body" }));
    el.replaceChildren(details);
  }
  const plain = (lines.at(-1) ?? "working").replace(/[`*]/g, "");
  details.querySelector(".last").textContent = plain;
  details.querySelector(".count").textContent = lines.length > 1 ? `${lines.length} steps` : "";
  details.classList.toggle("active", Boolean(view.interim && !opts.superseded));
  morph(details.querySelector(".body"), view.html ?? "");
  el.querySelector(":scope > .choices")?.remove();
  if (view.buttons?.length) el.append(buttonsOf(view));
}

function meta(view, ...rest) {
  const at = new Date(view.at);
  return h("div", { class: "meta" }, h("time", { datetime: view.at, title: whole.format(at), text: clock.format(at) }),
    view.edited ? h("span", { text: "edited" }) : null, ...rest.filter(Boolean));
}

function failure(text, actions) {
  return h("div", { class: "failure", role: "alert" }, icon("alert"), h("span", { text }), ...actions);
}

/** A message that is on its way. */
export function updateOutgoing(el, o) {
  const mark = `${o.state} ${o.error}`;
  if (el.mark !== mark) {
    el.mark = mark;
    el.view = null;
    el.dataset.kind = "outgoing";
    el.className = `msg user ${o.state}`;
    el.copyText = o.text;
    const names = o.files.map((f) => h("span", { class: "file" }, icon("file"), h("span", { class: "file-name", text: f.name }), h("span", { class: "file-size", text: size(f.size) })));
    el.replaceChildren(
      h("span", { class: "sr", text: "You wrote:" }),
      ...(names.length ? [h("div", { class: "files" }, ...names)] : []),
      ...(o.text ? [h("div", { class: "bubble", text: o.text })] : []),
      o.state === "sending"
        ? h("div", { class: "meta on" }, icon("clock"), h("span", { class: "share", text: "Sending…" }), o.files.length ? h("progress", { max: "1", value: "0", "aria-label": "Upload" }) : null)
        : failure(o.lost && !o.files.length ? `${o.error} Its files must be attached again.` : o.error, [
          !o.lost || o.files.length ? action("again", "Retry", "retry", { id: o.id }, true) : null,
          action("rewrite", "Edit", "edit", { id: o.id }),
          action("discard", "Discard", "bin", { id: o.id }),
        ].filter(Boolean)),
    );
  }
  if (o.state === "sending" && o.files.length) {
    el.querySelector("progress").value = o.progress;
    el.querySelector(".share").textContent = o.progress < 1 ? `Sending… ${Math.floor(o.progress * 100)} %` : "Sending…";
  }
  return el;
}
