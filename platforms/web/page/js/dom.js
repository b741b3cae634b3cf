// Small tools for making elements, and the icons.

/** By id. */
export const $ = (id) => document.getElementById(id);

/** Makes an element: attributes with "on…" are listeners, "class", "text" and dataset are set directly. */
export function h(tag, attrs = {}, ...children) {
  const el = document.createElement(tag);
  for (const [key, value] of Object.entries(attrs)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") el.className = value;
    else if (key === "text") el.textContent = value;
    else if (key === "data") Object.assign(el.dataset, value);
    else if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else el.setAttribute(key, value === true ? "" : value);
  }
  el.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

const paths = {
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  menu: "M4 7h16M4 12h16M4 17h10",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  clip: "M20 11.5l-8.2 8.2a5.2 5.2 0 0 1-7.4-7.4l8.6-8.5a3.5 3.5 0 0 1 4.9 4.9l-8.5 8.5a1.7 1.7 0 0 1-2.5-2.4l7.9-7.8",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  retry: "M20 12a8 8 0 1 1-2.6-5.9M20 4v5h-5",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  logout: "M14 5H6v14h8M11 12h9M17 9l3 3-3 3",
  caret: "M9 6l6 6-6 6",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2",
  alert: "M12 4l9 16H3zM12 10v4M12 17v.5",
};

/** Makes an icon. "stop" is the one that is filled. */
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("i");
  const shape = document.createElementNS(ns, name === "stop" ? "rect" : "path");
  if (name === "stop") {
    for (const [k, v] of Object.entries({ x: 6, y: 6, width: 12, height: 12, rx: 2.5, class: "filled" })) shape.setAttribute(k, v);
  } else {
    shape.setAttribute("d", paths[name]);
  }
  svg.append(shape);
  return svg;
}

/** Puts the icons into elements that name one in data-icon. */
export function fillIcons(root = document) {
  for (const el of root.querySelectorAll("[data-icon]")) el.prepend(icon(el.dataset.icon));
}

/** A random id, as the server wants them. crypto.randomUUID is missing on plain http. */
export function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

export function size(bytes) {
  if (bytes >= 1 << 20) return `${(bytes / (1 << 20)).toFixed(bytes >= 10 << 20 ? 0 : 1)} MB`;
  if (bytes >= 1 << 10) return `${Math.round(bytes / 1024)} KB`;
  return `${bytes} B`;
}

let announceTimer = 0;

/** Says something to a screen reader. */
export function announce(text) {
  clearTimeout(announceTimer);
  $("announce").textContent = "";
  announceTimer = setTimeout(() => { $("announce").textContent = text; }, 50);
}

/** Shows a short notice for a few seconds. */
export function toast(text, kind = "") {
  const el = h("div", { class: `toast ${kind}`, text });
  $("toasts").append(el);
  setTimeout(() => el.remove(), 5000);
}

/** Local storage that may be switched off. */
export const storage = {
  get(key, fallback) {
    try { return JSON.parse(localStorage.getItem(`herald.${key}`)) ?? fallback; } catch { return fallback; }
  },
  set(key, value) {
    try {
      if (value === undefined) localStorage.removeItem(`herald.${key}`);
      else localStorage.setItem(`herald.${key}`, JSON.stringify(value));
    } catch { /* full or off: what is kept there is a convenience */ }
  },
};
