// The list of conversations: a column beside the chat, on a phone a drawer over it.
import { $, h } from "./dom.js";
import { state } from "./state.js";

const day = 86_400_000;

function group(at) {
  const today = new Date().setHours(0, 0, 0, 0);
  if (at >= today) return "Today";
  if (at >= today - day) return "Yesterday";
  if (at >= today - 7 * day) return "Previous 7 days";
  return "Older";
}

let showAll = () => {};

export function renderChats() {
  const nav = $("chats");
  const focused = nav.contains(document.activeElement) ? document.activeElement.dataset.chat : null;
  const parts = [];
  let heading = "";
  let list = null;
  for (const c of state.listed()) {
    const g = group(c.at || Date.now());
    if (g !== heading) {
      heading = g;
      list = h("ul");
      parts.push(h("h2", { text: g }), list);
    }
    const unread = state.unread(c);
    list.append(h("li", {}, h("a", {
      href: `#/c/${c.id}`,
      class: unread ? "unread" : "",
      data: { chat: c.id },
      title: c.title,
      "aria-current": c.id === state.current ? "page" : undefined,
    }, h("span", { class: "chat-title", text: c.title || "New chat" }), unread ? h("span", { class: "badge" }, h("span", { class: "sr", text: "unread" })) : null)));
  }
  if (state.more) parts.push(h("button", { type: "button", class: "more-chats", text: "Show all", onclick: showAll }));
  if (!parts.length) parts.push(h("p", { class: "no-chats", text: "Your conversations appear here." }));
  nav.replaceChildren(...parts);
  if (focused) nav.querySelector(`[data-chat="${focused}"]`)?.focus();
}

const narrow = matchMedia("(max-width: 800px)");

export function openDrawer(open) {
  const app = $("app");
  if (app.classList.contains("drawer") === open) return;
  app.classList.toggle("drawer", open);
  $("scrim").hidden = !open;
  $("open-sidebar").setAttribute("aria-expanded", String(open));
  settleInert();
  if (open) ($("chats").querySelector("[aria-current]") ?? $("new-chat")).focus();
  else if (narrow.matches) $("open-sidebar").focus({ preventScroll: true });
}

export const drawerOpen = () => $("app").classList.contains("drawer");

// A drawer that is out of sight must not take the focus either, and neither must the page below it.
function settleInert() {
  $("sidebar").inert = narrow.matches && !drawerOpen();
  document.querySelector(".main").inert = narrow.matches && drawerOpen();
}

export function initSidebar({ newChat, allChats }) {
  showAll = allChats;
  $("open-sidebar").addEventListener("click", () => openDrawer(true));
  $("close-sidebar").addEventListener("click", () => openDrawer(false));
  $("scrim").addEventListener("click", () => openDrawer(false));
  $("new-chat").addEventListener("click", newChat);
  $("new-chat-top").addEventListener("click", newChat);
  narrow.addEventListener("change", () => { openDrawer(false); settleInert(); });
  settleInert();
  $("chats").addEventListener("click", (e) => { if (e.target.closest("a")) openDrawer(false); });
  $("sidebar").addEventListener("keydown", (e) => {
    if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
    const links = [$("new-chat"), ...$("chats").querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (at < 0) return;
    e.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, at + (e.key === "ArrowDown" ? 1 : -1)))].focus();
  });
}
