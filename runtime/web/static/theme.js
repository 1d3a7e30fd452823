// Before anything is drawn: the theme that was chosen, or else the system's.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const apply = () => {
    let chosen = null;
    try { chosen = localStorage.getItem("understudy-theme"); } catch { /* no storage: the system's */ }
    root.dataset.theme = chosen || (dark.matches ? "dark" : "light");
    root.dispatchEvent(new Event("theme"));
  };
  dark.addEventListener("change", apply);
  apply();
})();
