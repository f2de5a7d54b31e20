/* The table of models: columns as data, sorting by header buttons, the same filters as the charts. */
"use strict";

(() => {
  const { h, byId, format, glyph } = repcap;

  const limit = (row, name) => (row[name] ? row[name].log10_k : null);

  const COLUMNS = [
    { key: "label", title: "Model", text: true, value: (row) => row.label },
    { key: "family", title: "Family", text: true, value: (row) => row.family },
    { key: "d", title: "d_model", value: (row) => row.d, show: format.grouped },
    { key: "epsilon", title: "ε", value: (row) => row.epsilon, show: (value) => format.fixed(value, 5) },
    { key: "epsilon_ratio", title: "times random", value: (row) => row.epsilon_ratio, show: (value) => format.fixed(value, 2), bar: true },
    { key: "klass", title: "Class", text: true, value: (row) => row.klass },
    { key: "at_least", title: "At least", value: (row) => limit(row, "at_least"), show: format.power },
    { key: "law", title: "Law full", value: (row) => limit(row, "law"), show: format.power, law: true },
    { key: "upper", title: "At most", value: (row) => limit(row, "upper"), show: format.power },
    { key: "n", title: "Rows", value: (row) => row.n, show: format.grouped, optional: true },
    { key: "epsilon_se", title: "± s.e.", value: (row) => row.epsilon_se, show: (value) => format.significant(value, 2), optional: true },
    { key: "effective_dim", title: "Effective dim.", value: (row) => row.effective_dim, show: format.grouped, optional: true },
    { key: "s_limit", title: "s limit", value: (row) => row.s_limit, show: (value) => format.significant(value, 3), optional: true },
    { key: "s_max", title: "s max", value: (row) => row.s_max, show: format.grouped, optional: true },
    { key: "tail_dim", title: "d at 1e-4", value: (row) => row.tail_dim, show: (value) => format.significant(value, 3), optional: true },
  ];

  /** Only the columns of which some row says something. */
  const columnsFor = (rows) =>
    COLUMNS.filter((column) => !column.optional || rows.some((row) => column.value(row) !== null && column.value(row) !== undefined));

  function compare(column, direction) {
    const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
    return (a, b) => {
      const [u, v] = [column.value(a), column.value(b)];
      const [noU, noV] = [u === null || u === undefined, v === null || v === undefined];
      if (noU || noV) return noU - noV; // what is not known stays at the end in either direction
      return direction * (column.text ? collator.compare(u, v) : u - v) || collator.compare(a.label, b.label);
    };
  }

  function sorted(rows, { key, direction }) {
    const column = COLUMNS.find((candidate) => candidate.key === key);
    return [...rows].sort(compare(column, direction));
  }

  function head(columns, sort, onSort) {
    return h("tr", {}, columns.map((column) => {
      const active = column.key === sort.key;
      const arrow = active ? (sort.direction > 0 ? "▲" : "▼") : "↕";
      return h("th", { scope: "col", class: column.text ? column.key : "number", "aria-sort": active ? (sort.direction > 0 ? "ascending" : "descending") : null },
        h("button", { type: "button", "data-sort": column.key, onclick: () => onSort(column) },
          column.title, h("span", { class: active ? "arrow on" : "arrow", "aria-hidden": "true" }, arrow)));
    }));
  }

  function cell(column, row, { looks, most, indeterminate, open }) {
    const value = column.value(row);
    if (column.key === "label") {
      return h("th", { scope: "row" },
        h("button", { type: "button", class: "model", onclick: () => open(row) }, glyph(looks[row.family]), h("span", {}, value)));
    }
    if (column.key === "klass") return h("td", {}, h("span", { class: `class ${value}` }, value));
    if (column.text) return h("td", { class: column.key }, value);
    if (column.law && row.epsilon >= 0.1 && !indeterminate) return h("td", { class: "number" }, h("span", { class: "unsure" }, "indeterminate"));
    const text = value === null || value === undefined ? "–" : column.show(value);
    if (!column.bar) return h("td", { class: "number" }, text, column.law && row.epsilon >= 0.1 ? h("span", { class: "unsure" }, " indeterminate") : null);
    const fill = h("span", { class: "fill" });
    fill.style.inlineSize = `${Math.max(2, (100 * Math.log(Math.max(value, 1.0001))) / Math.log(most)).toFixed(1)}%`;
    return h("td", { class: "number with-bar" }, h("span", { class: "bar", "aria-hidden": "true" }, fill), h("span", {}, text));
  }

  /** Draw the table of `rows` (already filtered) into #models. */
  function table(rows, all, options) {
    const columns = columnsFor(all);
    const most = Math.max(1.01, ...all.map((row) => row.epsilon_ratio));
    const focused = document.activeElement && document.activeElement.dataset.sort;
    const body = sorted(rows, options.sort).map((row) => h("tr", { "data-id": row.id }, columns.map((column) => cell(column, row, { ...options, most }))));
    byId("models").tHead.replaceChildren(head(columns, options.sort, options.onSort));
    byId("models").tBodies[0].replaceChildren(...body);
    byId("none").hidden = rows.length > 0;
    if (focused) byId("models").querySelector(`[data-sort="${focused}"]`).focus();
  }

  const sortable = (key) => COLUMNS.some((column) => column.key === key);

  Object.assign(repcap, { table, sorted, sortable, limit });
})();
