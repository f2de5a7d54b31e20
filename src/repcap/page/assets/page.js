/* The page: reads the data, holds what is shown (filters, sorting, theme), and redraws the parts. */
"use strict";

(() => {
  const { h, byId, format, glyph, tip, METRICS, scatter, brackets, bracketKey, distributions, sorted, calculator, lines, sharing } = repcap;
  const data = JSON.parse(byId("data").textContent);
  const rows = data.rows;
  const looks = data.looks;
  rows.forEach((row, place) => {
    row.id = String(place);
    row.words = sharing.tokens([row.label, row.family, row.source, row.klass, row.matrix, String(row.d)].join(" "));
  });

  const state = {
    query: "", families: new Set(), classes: new Set(), metric: "epsilon", indeterminate: false,
    sort: { key: "epsilon_ratio", direction: 1 }, order: "law", allBrackets: false, zoom: true, compared: new Set(),
  };

  function matching() {
    return rows.filter((row) =>
      (!state.families.size || state.families.has(row.family)) &&
      (!state.classes.size || state.classes.has(row.klass)) &&
      sharing.matches(state.query, row.words));
  }

  const { unsure, list, versus, card, describe } = repcap.cards(data, state);

  function open(row) {
    tip.hide();
    const against = byId("detail-against");
    against.value = "";
    against.onchange = () => {
      byId("detail-facts").hidden = against.value !== "";
      byId("detail-more").replaceChildren(...(against.value ? [versus(row, rows[Number(against.value)])] : []));
    };
    byId("detail-facts").hidden = false;
    byId("detail-more").replaceChildren();
    byId("detail").addEventListener("close", () => remember(null), { once: true });
    remember(row);
    byId("detail-title").replaceChildren(glyph(looks[row.family]), row.label);
    byId("detail-facts").replaceChildren(list(row), ...(row.common ? [h("p", {}, row.common)] : []), ...[sharing.hub(row)].filter(Boolean));
    byId("detail-use").onclick = () => {
      byId("detail").close();
      calculator.choose({ d: row.d, epsilon: row.epsilon, vocab: row.n, tied: row.tied });
      byId("calculator").scrollIntoView();
      byId("calc-d").focus({ preventScroll: true });
    };
    byId("detail-use").hidden = row.epsilon <= 0 || row.epsilon >= 1;
    byId("detail").showModal();
    const host = byId("detail-chart");
    host.replaceChildren();
    byId("detail-histogram").hidden = !row.histogram;
    if (row.histogram) distributions(host, [row], { zoom: true, colours: data.cycle, height: 280 });
  }

  // The parts ------------------------------------------------------------------------------------------------------

  /** Names models that a chart cannot show, and says why. */
  function leftOut(host, left, why) {
    host.hidden = !left.length;
    const short = (label) => (label.length > 60 ? `${label.slice(0, 59)}…` : label);
    const names = left.slice(0, 6).map((row) => short(row.label)).join(", ") + (left.length > 6 ? ` and ${left.length - 6} more` : "");
    host.textContent = left.length ? `Not in this chart: ${names}. ${why} The table has ${left.length === 1 ? "it" : "them"}.` : "";
  }

  function drawScatter() {
    const shown = matching();
    scatter(byId("scatter"), rows, { metric: state.metric, z: data.z, shown: new Set(shown), looks, describe: (row) => describe(row, state.metric), card, open });
    const { value, border, says } = METRICS[state.metric];
    byId("shading").hidden = !border;
    byId("says").textContent = says || "";
    leftOut(byId("no-mark"), shown.filter((row) => !(value(row) > 0)), border ? "An ε of 0 or below has no place on a logarithmic axis." : "This was not counted, or is 0.");
  }

  const ORDERS = {
    law: (row) => -row.law.log10_k, upper: (row) => -row.upper.log10_k, at_least: (row) => -row.at_least.log10_k,
    d: (row) => row.d, label: null,
  };

  /** More bars than this are drawn only when asked: nobody reads a chart of a thousand. */
  const MOST_BRACKETS = 60;

  function drawBrackets() {
    const shown = matching();
    leftOut(byId("no-bracket"), shown.filter((row) => row.epsilon <= 0 || row.epsilon >= 1), "There is a bracket only for an ε between 0 and 1.");
    const fit = shown.filter((row) => row.law && row.explicit && row.upper && (state.indeterminate || !unsure(row)));
    const by = ORDERS[state.order];
    const ordered = by ? [...fit].sort((a, b) => by(a) - by(b)) : sorted(fit, { key: "label", direction: 1 });
    byId("no-brackets").hidden = ordered.length > 0;
    if (!ordered.length) {
      byId("more-brackets").hidden = true;
      return byId("brackets").replaceChildren();
    }
    const below = ordered.filter((row) => row.law.log10_k < row.at_least.log10_k).length;
    byId("bracket-count").textContent =
      `For ${below} of the ${ordered.length} models shown it gives fewer directions than are proven to exist.`;
    const hidden = state.allBrackets ? 0 : Math.max(0, ordered.length - MOST_BRACKETS);
    byId("more-brackets").hidden = hidden === 0;
    byId("more-brackets").firstElementChild.textContent = `Show the other ${hidden}`;
    return brackets(byId("brackets"), ordered.slice(0, ordered.length - hidden), { wide: state.indeterminate && ordered.some(unsure), describe, card, open });
  }

  function drawTable() {
    const shown = matching();
    repcap.table(shown, rows, {
      sort: state.sort, looks, indeterminate: state.indeterminate, open,
      onSort: (column) => {
        const same = state.sort.key === column.key;
        state.sort = { key: column.key, direction: same ? -state.sort.direction : 1 };
        drawTable();
        remember();
      },
    });
    const models = rows.length === 1 ? "model" : "models";
    byId("count").textContent = shown.length === rows.length ? `${rows.length} ${models}` : `${shown.length} of ${rows.length} ${models}`;
  }

  let known = [];

  function drawLines() {
    if (!known.length) known = lines.rows();
    lines.draw(byId("lines-chart"), known, { colours: data.cycle, pick: (d) => {
      calculator.choose({ d });
      byId("calculator").scrollIntoView();
    } });
  }

  function drawDistributions() {
    const held = rows.filter((row) => row.histogram);
    if (!held.length) return;
    const chosen = held.filter((row) => state.compared.has(row.id));
    byId("distributions-key").replaceChildren(...chosen.map((row, place) => h("span", { class: "key" }, repcap.s("svg", { viewBox: "0 0 26 12", class: "line-glyph", "aria-hidden": "true" },
      repcap.s("path", { d: "M1,6H25", class: "curve", stroke: data.cycle[place % data.cycle.length], "stroke-dasharray": repcap.DASHES[place] })), row.label)));
    if (chosen.length) distributions(byId("distributions"), chosen, { zoom: state.zoom, colours: data.cycle });
    else byId("distributions").replaceChildren();
    for (const box of byId("compare").querySelectorAll("input")) {
      box.disabled = !box.checked && chosen.length >= data.cycle.length;
    }
  }

  // The address ----------------------------------------------------------------------------------------------------

  let opened = null;

  /** Put what is shown into the address, so that a link shows it again. */
  function remember(row = opened) {
    opened = row;
    const { d, epsilon, vocab, tied } = calculator.values();
    const given = [d, epsilon, vocab, tied ? "tied" : ""].join(" ").trim();
    sharing.write({
      q: state.query, family: [...state.families].join(","), class: [...state.classes].join(","),
      show: state.metric === "epsilon" ? "" : state.metric, order: state.order === "law" ? "" : state.order,
      all: state.indeterminate ? "1" : "", sort: state.sort.key === "epsilon_ratio" && state.sort.direction === 1 ? "" : `${state.sort.key} ${state.sort.direction}`,
      model: row ? row.label : "", calc: given === start ? "" : given,
    });
  }

  let start = "";

  /** Show what the address asks for. */
  function recall() {
    const said = sharing.read();
    state.query = byId("search").value = said.get("q") || "";
    for (const [name, chosen] of [["family", state.families], ["class", state.classes]]) {
      for (const value of (said.get(name) || "").split(",").filter(Boolean)) {
        const chip = [...document.querySelectorAll(".chip")].find((one) => one.dataset.name === value);
        if (!chip) continue;
        chosen.add(value);
        chip.setAttribute("aria-pressed", "true");
      }
    }
    const choose = (selector) => { const found = document.querySelector(selector); if (found) found.checked = true; };
    const metric = document.querySelector(`input[name="metric"][value="${CSS.escape(said.get("show") || "")}"]`);
    if (metric) { state.metric = metric.value; metric.checked = true; }
    if (said.get("all")) { state.indeterminate = true; choose("#indeterminate"); }
    if (Object.hasOwn(ORDERS, said.get("order") || "")) state.order = byId("order").value = said.get("order");
    const [key, direction] = (said.get("sort") || "").split(" ");
    if (repcap.sortable(key)) state.sort = { key, direction: direction === "-1" ? -1 : 1 };
    const [d, epsilon, vocab, tied] = (said.get("calc") || "").split(" ");
    if (Number(d) > 0 && Number(epsilon) > 0) calculator.choose({ d, epsilon, vocab: vocab || null, tied: tied === "tied" });
    const row = rows.find((one) => one.label === said.get("model"));
    drawFiltered();
    if (row) open(row);
  }

  function drawFiltered() {
    tip.hide();
    remember();
    drawScatter();
    drawBrackets();
    drawTable();
  }

  // Controls -------------------------------------------------------------------------------------------------------

  function chips(host, names, chosen, look) {
    const counts = (name) => rows.filter((row) => row.family === name || row.klass === name).length;
    host.append(...names.map((name) => {
      const chip = h("button", { type: "button", class: "chip", "aria-pressed": "false", "data-name": name }, look(name), name, h("small", {}, counts(name)));
      chip.addEventListener("click", () => {
        if (chosen.has(name)) chosen.delete(name);
        else chosen.add(name);
        chip.setAttribute("aria-pressed", String(chosen.has(name)));
        drawFiltered();
      });
      return chip;
    }));
  }

  function segmented(name, key, draw) {
    for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
      input.addEventListener("change", () => {
        state[key] = input.value === "true" ? true : input.value === "false" ? false : input.value;
        draw();
        remember();
      });
    }
  }

  function clear() {
    state.query = "";
    byId("search").value = "";
    state.families.clear();
    state.classes.clear();
    for (const chip of document.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", "false");
    drawFiltered();
  }

  function compareList() {
    const held = rows.filter((row) => row.histogram);
    byId("similarity").hidden = !held.length;
    byId("nav-similarity").hidden = !held.length;
    held.slice(0, 4).forEach((row) => state.compared.add(row.id));
    byId("compare").append(...held.map((row) => h("label", {},
      h("input", { type: "checkbox", checked: state.compared.has(row.id), onchange: (event) => {
        if (event.target.checked) state.compared.add(row.id);
        else state.compared.delete(row.id);
        drawDistributions();
      } }), row.label)));
  }

  function theme() {
    const root = document.documentElement;
    const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
    const label = () => {
      byId("theme").textContent = dark() ? "Light" : "Dark";
      byId("theme").setAttribute("aria-label", `switch to the ${dark() ? "light" : "dark"} theme`);
    };
    byId("theme").addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try {
        localStorage.setItem("repcap-theme", root.dataset.theme);
      } catch { /* a browser that keeps nothing for pages from disk */ }
      label();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    label();
  }

  function controls() {
    const families = Object.keys(looks);
    chips(byId("families"), families, state.families, (name) => glyph(looks[name]));
    const classes = ["low", "between", "high"].filter((name) => rows.some((row) => row.klass === name));
    chips(byId("classes"), classes, state.classes, (name) => h("span", { class: `dot ${name}`, "aria-hidden": "true" }));
    byId("search").addEventListener("input", (event) => {
      state.query = event.target.value;
      drawFiltered();
    });
    for (const button of document.querySelectorAll(".clear")) button.addEventListener("click", clear);
    for (const input of document.querySelectorAll('input[name="metric"]')) {
      if (!rows.some((row) => METRICS[input.value].value(row) > 0) && input.value !== state.metric) input.closest("label").remove();
    }
    segmented("metric", "metric", drawScatter);
    segmented("zoom", "zoom", drawDistributions);
    byId("order").addEventListener("change", (event) => {
      state.order = event.target.value;
      drawBrackets();
      remember();
    });
    byId("indeterminate").addEventListener("change", (event) => {
      state.indeterminate = event.target.checked;
      drawBrackets();
      drawTable();
      remember();
    });
    byId("ask").addEventListener("click", () => byId("indeterminate").click());
    byId("more-brackets").firstElementChild.addEventListener("click", () => {
      state.allBrackets = true;
      drawBrackets();
      const next = document.querySelectorAll("#brackets .range")[MOST_BRACKETS];
      if (next) next.focus();
    });
    byId("detail-close").addEventListener("click", () => byId("detail").close());
    byId("detail").addEventListener("click", (event) => {
      if (event.target === byId("detail")) byId("detail").close();
    });
    byId("bracket-key").append(...bracketKey());
  }

  function onResize(draw) {
    let width = document.documentElement.clientWidth;
    new ResizeObserver(() => {
      if (document.documentElement.clientWidth === width) return;
      width = document.documentElement.clientWidth;
      requestAnimationFrame(draw);
    }).observe(document.documentElement);
  }

  controls();
  theme();
  compareList();
  byId("detail-against").append(...rows.map((row) => h("option", { value: row.id }, row.label)));
  byId("lines-key").append(...lines.key());
  sharing.offer(["scatter", "brackets", "distributions", "calc-chart", "lines-chart"].map(byId), { "lines-chart": () => lines.csv(known) });
  drawDistributions();
  calculator.start(rows.filter((row) => row.epsilon > 0 && row.epsilon < 1), data.fitted);
  calculator.choose(data.start);
  start = [...Object.values(calculator.values()).slice(0, 3), calculator.values().tied ? "tied" : ""].join(" ").trim();
  recall();
  byId("calc-form").addEventListener("input", () => remember());
  onResize(() => {
    drawFiltered();
    drawDistributions();
    calculator.render();
    drawLines();
  });
  performance.mark("repcap-drawn");
  setTimeout(drawLines); // what stands first on the page is drawn first
})();
