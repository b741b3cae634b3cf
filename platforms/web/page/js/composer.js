// The message box: text, files, and what is wrong with them.
import { $, h, icon, size, storage } from "./dom.js";
import { state } from "./state.js";
import { closeMenu, initMenu, menuKey, updateMenu } from "./complete.js";

let files = [];
let submit = () => {};
const coarse = matchMedia("(pointer: coarse)");

const draftKey = () => `draft.${state.current ?? "new"}`;

export function problem(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text ?? "";
}

/** Fits the box to its text, up to what the style allows. */
function fit() {
  const text = $("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

function refresh() {
  fit();
  $("send").disabled = !$("text").value.trim() && !files.length;
}

/** Puts a text and files into the box, in front of what is there. */
export function compose(value, list = []) {
  const text = $("text");
  text.value = [value, text.value].filter((s) => s.trim()).join("\n\n");
  files = [...list, ...files];
  renderTray();
  saveDraft();
  refresh();
  text.focus();
  text.setSelectionRange(text.value.length, text.value.length);
}

function saveDraft() { storage.set(draftKey(), $("text").value || undefined); }

/** Shows the draft of the chat that is now current. */
export function loadDraft() {
  $("text").value = storage.get(draftKey(), "");
  files = [];
  renderTray();
  problem("");
  closeMenu();
  refresh();
}

export function clearBox() {
  $("text").value = "";
  files = [];
  saveDraft();
  renderTray();
  problem("");
  closeMenu();
  refresh();
}

function addFiles(list) {
  const room = state.limits.files - files.length;
  let total = files.reduce((n, f) => n + f.size, 0);
  for (const f of [...list].slice(0, room)) {
    if (total + f.size > state.limits.upload) {
      problem(`${f.name} is too big: at most ${size(state.limits.upload)} can be sent with one message.`);
      continue;
    }
    total += f.size;
    files.push(f);
  }
  if (list.length > room) problem(`At most ${state.limits.files} files go with one message.`);
  renderTray();
  refresh();
  $("text").focus();
}

function renderTray() {
  const tray = $("tray");
  for (const img of tray.querySelectorAll("img")) URL.revokeObjectURL(img.src);
  tray.hidden = !files.length;
  tray.replaceChildren(...files.map((f, i) => h("li", {},
    f.type.startsWith("image/") && f.type !== "image/svg+xml" ? h("img", { src: URL.createObjectURL(f), alt: "" }) : icon("file"),
    h("span", { class: "tray-name", text: f.name, title: f.name }), h("span", { class: "tray-size", text: size(f.size) }),
    h("button", { type: "button", "aria-label": `Remove ${f.name}`, onclick: () => { files.splice(i, 1); renderTray(); refresh(); $("text").focus(); } }, icon("close")))));
}

function send() {
  const value = $("text").value;
  if (!value.trim() && !files.length) return;
  const bytes = new TextEncoder().encode(value).length;
  if (bytes > state.limits.text) {
    problem(`The message has ${size(bytes)}; at most ${size(state.limits.text)} can be sent. Shorten it, or attach it as a file.`);
    return;
  }
  const list = files;
  clearBox();
  submit(value, list);
}

function initDrop() {
  let depth = 0;
  const holdsFiles = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (e) => { if (holdsFiles(e)) { depth++; $("drop").hidden = false; } });
  addEventListener("dragleave", (e) => { if (holdsFiles(e) && --depth <= 0) { depth = 0; $("drop").hidden = true; } });
  addEventListener("dragover", (e) => { if (holdsFiles(e)) e.preventDefault(); });
  addEventListener("drop", (e) => {
    if (!holdsFiles(e)) return;
    e.preventDefault();
    depth = 0;
    $("drop").hidden = true;
    addFiles(e.dataTransfer.files);
  });
}

export function initComposer(onSubmit) {
  submit = onSubmit;
  initMenu();
  initDrop();
  const text = $("text");
  text.addEventListener("input", () => { saveDraft(); problem(""); refresh(); updateMenu(); });
  text.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (menuKey(e)) {
      e.preventDefault();
      e.stopPropagation();
      return;
    }
    if (e.key === "Enter" && !e.shiftKey && !coarse.matches) {
      e.preventDefault();
      send();
    }
  });
  text.addEventListener("paste", (e) => {
    if (!e.clipboardData?.files.length) return;
    e.preventDefault();
    addFiles(e.clipboardData.files);
  });
  $("composer").addEventListener("submit", (e) => { e.preventDefault(); send(); });
  $("composer").addEventListener("click", (e) => { if (e.target === $("composer")) text.focus(); });
  $("attach").addEventListener("click", () => $("files").click());
  $("files").addEventListener("change", () => { addFiles($("files").files); $("files").value = ""; });
  addEventListener("resize", fit);
  refresh();
}
