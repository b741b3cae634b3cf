// The menu of commands over the message box, for a text that begins with "/".
import { $, h } from "./dom.js";
import { state } from "./state.js";

let items = [];
let at = 0;
let closedFor = null; // the text for which it was closed by hand

export const menuOpen = () => !$("menu").hidden;

function matches(word) {
  const starts = state.commands.filter((c) => c.name.startsWith(word));
  const holds = state.commands.filter((c) => !c.name.startsWith(word) && c.name.includes(word));
  return [...starts, ...holds];
}

/** Looks at the text again. */
export function updateMenu() {
  const text = $("text").value;
  const found = /^\/(\w*)$/.exec(text);
  if (!found || text === closedFor) {
    if (text !== closedFor) closedFor = null;
    return show([]);
  }
  closedFor = null;
  at = 0;
  show(matches(found[1].toLowerCase()));
}

function show(list) {
  items = list;
  const menu = $("menu");
  menu.hidden = !list.length;
  $("text").setAttribute("aria-expanded", String(list.length > 0));
  menu.replaceChildren(...list.map((c, i) => h("li", {
    id: `cmd-${i}`, role: "option", data: { i }, "aria-selected": String(i === at),
  }, h("span", { class: "cmd" }, `/${c.name}`, c.args ? h("span", { class: "args", text: ` ${c.args}` }) : null), h("span", { class: "about", text: c.description }))));
  mark();
}

function mark() {
  [...$("menu").children].forEach((el, i) => el.setAttribute("aria-selected", String(i === at)));
  if (items.length) {
    $("text").setAttribute("aria-activedescendant", `cmd-${at}`);
    $("menu").children[at].scrollIntoView({ block: "nearest" });
  } else $("text").removeAttribute("aria-activedescendant");
}

function choose(i) {
  const c = items[i];
  const text = $("text");
  text.value = `/${c.name}${c.args ? " " : ""}`;
  closedFor = text.value;
  text.focus();
  text.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Handles a key while the menu is open. True when the key was for the menu. */
export function menuKey(e) {
  if (!menuOpen()) return false;
  switch (e.key) {
    case "ArrowDown": at = (at + 1) % items.length; mark(); return true;
    case "ArrowUp": at = (at + items.length - 1) % items.length; mark(); return true;
    case "Tab": choose(at); return true;
    case "Enter":
      if (e.shiftKey || $("text").value === `/${items[at].name}`) { closeMenu(); return false; }
      choose(at);
      return true;
    case "Escape": closeMenu(); return true;
  }
  return false;
}

export function closeMenu() {
  closedFor = $("text").value;
  show([]);
}

export function initMenu() {
  $("menu").addEventListener("mousedown", (e) => {
    const el = e.target.closest("li");
    e.preventDefault(); // the text keeps the focus
    if (el) choose(Number(el.dataset.i));
  });
  $("text").addEventListener("blur", () => show([]));
}
