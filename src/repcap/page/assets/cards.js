/* What one model says: its facts as a card (tooltip), as a dialog's list, beside another model, and read aloud. */
"use strict";

(() => {
  const { h, format, glyph, METRICS } = repcap;

  const unsure = (row) => row.epsilon >= 0.1;

  function limitText(row, name) {
    const limit = row[name];
    if (!limit) return null;
    const own = ["law", "exists", "ratio"].includes(name) ? "" : ` (${limit.name})`;
    const word = unsure(row) && name === "law" ? ", indeterminate" : "";
    return `${format.power(limit.log10_k)}${own}${word}`;
  }

  /** What the words of a card mean. */
  const MEANING = {
    class: "high: ε above 0.2; low: below 0.1; the published borders, which do not depend on d",
    "times random": "how many times the ε of directions drawn at random in as many dimensions",
    "s limit": "about so many rows in one vector can be read apart at best, by any linear readout",
    "s max": "so many rows in one vector are read apart by the best linear readout, as counted over the pairs of rows",
    "tail dimension": "random directions in so many dimensions have as large cosines in that share of their pairs; alike at every share where rows are spread as if at random, less in rare pairs where they form clusters",
    "effective dimension": "in so many dimensions random directions would overlap as much",
    "largest |cosine|": "of the two rows that overlap most",
    "law full": "a formula fitted to packings that an optimiser found: no limit",
    "at most": "proven: no set of directions with every |cosine| at most ε has more",
    "random coding": "proven to exist, though nobody has written such a set down",
    tied: "whether the embedding is the unembedding too",
  };

  /** data: the page's. state: `indeterminate`, whether capacities beyond the law's range are shown. */
  function cards(data, state) {
    const looks = data.looks;

    function facts(row) {
      const plusMinus = row.epsilon_se ? ` ± ${format.significant(row.epsilon_se, 2)}` : "";
      return [
        [`ε = mean + ${data.z} std`, `${format.fixed(row.epsilon, 5)}${plusMinus}`],
        [`random: ${data.z}/√d`, format.fixed(row.epsilon_null, 5)],
        ["times random", format.fixed(row.epsilon_ratio, 3)],
        ["class", row.klass],
        ["d_model", format.grouped(row.d)],
        ["matrix", row.matrix],
        ["rows", row.n === null ? null : format.grouped(row.n)],
        ["left out", row.dropped_count ? `${format.grouped(row.dropped_count)} rows without a direction` : null],
        ["mean, std", row.mean === null || row.std === null ? null : `${format.significant(row.mean, 4)}, ${format.significant(row.std, 4)}`],
        ["estimated", row.estimate],
        ["largest |cosine|", format.significant(row.coherence, 4) || null],
        ...row.variants.map((variant) => [`ε, ${variant.rows}`, `${format.fixed(variant.epsilon, 5)} (${format.fixed(variant.epsilon_ratio, 2)} times random)`]),
        ["effective dimension", row.effective_dim === null ? null : format.significant(row.effective_dim, 5)],
        ["s limit", row.s_limit === null ? null : `${format.significant(row.s_limit, 3)} (1 idle row in 1000 reads above 0.5)`],
        ["s max", row.s_max === null ? null : `${format.grouped(row.s_max)} (1 idle row in 1000 reads above 0.5)`],
        ["tail dimension", row.tails.map((tail) => `${format.significant(tail.dim, 3)} at ${tail.alpha}`).join(", ")],
        ["tied", row.tied === null ? null : row.tied ? "yes" : "no"],
        ["dtype", row.dtype],
        ["at least", limitText(row, "at_least")],
        ["explicit set", limitText(row, "explicit")],
        ["random coding", limitText(row, "exists")],
        ["law full", !unsure(row) || state.indeterminate ? limitText(row, "law") : row.law ? "indeterminate (ε ≥ 0.1)" : null],
        ["at most", limitText(row, "upper")],
        ["published capacity", row.published_capacity === null ? null : format.power(Math.log10(row.published_capacity))],
        ["source", row.source || null],
        ["revision", row.revision],
        ["repcap", row.version],
      ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    }

    const list = (row) => h("dl", {}, facts(row).map(([name, value]) => [h("dt", { title: MEANING[name] }, name), h("dd", {}, value)]));

    /** Two models side by side, fact by fact. */
    function versus(row, other) {
      const [own, others] = [new Map(facts(row)), new Map(facts(other))];
      const names = [...new Set([...own.keys(), ...others.keys()])];
      return h("table", { class: "versus" },
        h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", { scope: "col" }, row.label), h("th", { scope: "col" }, other.label))),
        h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, own.get(name) || "–"), h("td", {}, others.get(name) || "–")))));
    }

    function card(...several) {
      const [row, ...others] = several;
      return h("div", {}, h("strong", {}, glyph(looks[row.family]), row.label), list(row),
        others.length ? h("p", {}, `At the same place: ${others.map((other) => other.label).join(", ")}`) : null);
    }

    /** A mark in words: what stands over the widths comes last where it is neither epsilon nor its ratio. */
    const describe = (row, metric = "epsilon") =>
      `${row.label}: d ${row.d}, epsilon ${format.significant(row.epsilon, 4)}, ${format.fixed(row.epsilon_ratio, 2)} times random, class ${row.klass}` +
      (row.law && !unsure(row) ? `, law ${format.power(row.law.log10_k)}` : "") + METRICS[metric].said(row);

    return { unsure, list, versus, card, describe };
  }

  Object.assign(repcap, { cards });
})();
