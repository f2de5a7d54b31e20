/* Before the first paint: the theme that the reader chose the last time. */
try {
  const chosen = localStorage.getItem("repcap-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* pages from disk may keep nothing */ }
