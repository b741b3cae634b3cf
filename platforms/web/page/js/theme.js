// Sets the theme before the first paint. Loaded as a plain script in the head for that reason alone.
(() => {
  let choice = null;
  try { choice = localStorage.getItem("herald.theme"); } catch { /* storage is off: follow the system */ }
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
})();
