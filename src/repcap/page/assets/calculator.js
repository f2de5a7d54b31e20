/* The calculator: d, epsilon, vocabulary and tying in; every law, the bracket and what is left for features out.
   It computes here, with laws.js, so it answers at once and needs no server. */
"use strict";

(() => {
  const { h, byId, format, laws, capacityCurves } = repcap;

  const LINES = [
    ["upper", "Proven upper bound", "at most"],
    ["explicit", "Explicit set", "at least"],
    ["exists", "Random coding", "at least"],
    ...laws.curves.map(({ key, label, standing }) => [key, label.replace("law", "Law"), standing]).reverse(),
  ];

  const FITTED = laws.curves.filter((curve) => curve.fitted).map(({ key }) => key);
  let fitted = {};

  /** log10(10^log10k - used), null where nothing is left. */
  function left(log10k, used) {
    if (!Number.isFinite(log10k)) return log10k;
    if (used <= 0) return log10k;
    const gap = Math.log10(used) - log10k;
    return gap >= 0 ? null : log10k + Math.log1p(-(10 ** gap)) / Math.LN10;
  }

  const flat = (found) => Object.fromEntries(LINES.map(([name]) => [name, found[name].log10_k]));

  /** Why (d, k) lies outside the data that the laws were fitted to, in words; null inside (as repcap/laws/fitting/ranges.py). */
  function outside(d, log10k) {
    const dims = Object.keys(fitted).map(Number).sort((a, b) => a - b);
    const [least, most] = [dims[0], dims[dims.length - 1]];
    if (d < least || d > most) return `d = ${d} is not within ${least} to ${most}`;
    const near = [dims.filter((x) => x <= d).pop(), dims.find((x) => x >= d)];
    const low = Math.max(...near.map((x) => fitted[x][0] / x));
    const high = Math.min(...near.map((x) => fitted[x][1] / x));
    const share = log10k - Math.log10(d);
    if (share >= Math.log10(low) - 1e-9 && share <= Math.log10(high) + 1e-9) return null;
    const range = `${format.significant(low, 3)} to ${format.significant(high, 3)}`;
    return `k = ${format.power(log10k)} (k/d = ${format.power(share)}) is not within k/d = ${range} at d = ${d}`;
  }

  const each = (names, found) => names.map((name) => `${name} gives ${format.power(found[name].log10_k)}`).join(" and ");

  function extrapolation(d, found) {
    const names = FITTED.filter((name) => outside(d, found[name].log10_k));
    if (!names.length) return [];
    const reasons = [...new Set(names.map((name) => outside(d, found[name].log10_k)))];
    const subject = names.length > 1 ? "they were" : "it was";
    return [`${names.join(" and ")}: an extrapolation beyond the data that ${subject} fitted to: ${reasons.join("; ")}.`];
  }

  /** What must be said beside the numbers, as repcap/bracket/interval.py says it. */
  function warnings(d, epsilon, found) {
    const random = found.exists.log10_k > found.explicit.log10_k;
    const proven = random ? { log10_k: found.exists.log10_k, name: "random coding" } : found.explicit;
    const low = FITTED.filter((name) => found[name].log10_k < proven.log10_k - 1e-9);
    const high = FITTED.filter((name) => found[name].log10_k > found.upper.log10_k + 1e-9);
    const list = [];
    if (low.length) {
      list.push(`${each(low, found)}: below the ${format.power(proven.log10_k)} lines that are proven to exist (${proven.name}), so no upper bound on k.`);
    }
    if (high.length) {
      list.push(`${each(high, found)}: above the ${format.power(found.upper.log10_k)} lines that are possible at most (${found.upper.name}).`);
    }
    list.push(...extrapolation(d, found));
    if (epsilon >= 0.1) list.push("ε ≥ 0.1, where the paper calls the capacity indeterminate.");
    const null_ = 2 / Math.sqrt(d);
    list.push(`Random directions at this d have ε = ${null_.toPrecision(3)}; yours is ${(epsilon / null_).toFixed(2)} times that.`);
    return list;
  }

  function read() {
    const number = (id) => {
      const field = byId(id);
      const value = Number(field.value);
      return field.value.trim() === "" || !Number.isFinite(value) ? null : value;
    };
    return { d: number("calc-d"), epsilon: number("calc-eps"), vocab: number("calc-vocab"), tied: byId("calc-tied").checked };
  }

  function problem({ d, epsilon, vocab }) {
    if (d === null || d < 2 || d > 1e6 || d !== Math.floor(d)) return "d must be a whole number from 2 to 1 000 000.";
    if (epsilon === null || epsilon <= 0 || epsilon >= 1) return "ε must lie between 0 and 1.";
    if (vocab !== null && (vocab < 0 || vocab !== Math.floor(vocab))) return "The vocabulary must be a whole number.";
    return null;
  }

  function lineOf([name, title, standing], values, found, used) {
    const detail = name === "upper" || name === "explicit" ? found[name].name : null;
    const rest = left(values[name], used);
    return h("tr", { "data-line": name, "data-log10": values[name] },
      h("th", { scope: "row" }, title, h("small", {}, h("span", { class: `standing ${standing.replaceAll(" ", "-")}` }, standing), detail ? ` · ${detail}` : null)),
      h("td", { class: "number strong" }, format.power(values[name])),
      h("td", { class: "number log" }, Number.isFinite(values[name]) ? values[name].toFixed(3) : "∞"),
      used > 0 ? h("td", { class: "number" }, rest === null ? h("span", { class: "unsure" }, "none") : format.power(rest)) : null);
  }

  function render() {
    const given = read();
    const trouble = problem(given);
    byId("calc-problem").textContent = trouble || "";
    byId("calc-result").hidden = trouble !== null;
    if (trouble) return;
    const { d, epsilon, vocab, tied } = given;
    const found = laws.capacity(d, epsilon);
    const values = flat(found);
    const used = (vocab || 0) * (tied ? 1 : 2);
    byId("calc-range").value = String(Math.log10(epsilon));
    byId("calc-head").replaceChildren(h("tr", {}, ["Law or bound", "k", "log₁₀ k"].map((title, place) =>
      h("th", { scope: "col", class: ["", "number", "number log"][place] }, title)), used > 0 ? h("th", { scope: "col", class: "number" }, "left for features") : null));
    byId("calc-body").replaceChildren(...LINES.map((line) => lineOf(line, values, found, used)));
    byId("calc-notes").replaceChildren(...warnings(d, epsilon, found).map((text) => h("li", {}, text)));
    byId("calc-budget").textContent = used > 0
      ? `Budget: k = ${tied ? "V" : "2V"} + features. The tokens take ${format.grouped(used)} directions.`
      : "Give a vocabulary to see what is left for features.";
    curves(d, epsilon);
  }

  function curves(d, epsilon) {
    capacityCurves(byId("calc-chart"), { d, epsilon, evaluate: (dim, eps) => flat(laws.capacity(dim, eps)), pick: (eps) => choose({ epsilon: eps }) });
  }

  /** Put values into the fields and compute. */
  function choose({ d, epsilon, vocab, tied }) {
    if (d !== undefined) byId("calc-d").value = String(d);
    if (epsilon !== undefined) byId("calc-eps").value = String(epsilon);
    if (vocab !== undefined) byId("calc-vocab").value = vocab === null ? "" : String(vocab);
    if (tied !== undefined && tied !== null) byId("calc-tied").checked = tied;
    render();
  }

  /** The range of k of each d that the fitted laws rest on. */
  const know = (ranges) => { fitted = ranges; };

  function start(rows, ranges) {
    know(ranges);
    for (const id of ["calc-d", "calc-eps", "calc-vocab", "calc-tied"]) byId(id).addEventListener("input", render);
    byId("calc-form").addEventListener("submit", (event) => event.preventDefault());
    byId("calc-range").addEventListener("input", (event) => choose({ epsilon: Number((10 ** Number(event.target.value)).toPrecision(3)) }));
    byId("calc-key").replaceChildren(...repcap.curveKey());
    const preset = byId("calc-model");
    rows.forEach((row, place) => preset.append(h("option", { value: place }, `${row.label} (d = ${row.d}, ε = ${format.significant(row.epsilon, 4)})`)));
    preset.addEventListener("change", () => {
      const row = rows[Number(preset.value)];
      if (preset.value !== "" && row) choose({ d: row.d, epsilon: row.epsilon, vocab: row.n, tied: row.tied });
    });
  }

  repcap.calculator = { values: read, start, know, render, choose, left, warnings };
})();
