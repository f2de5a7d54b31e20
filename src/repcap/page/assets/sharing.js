/* What a reader takes away: the state of the page in its address, a chart as SVG, a model's address on the Hub. */
"use strict";

(() => {
  const { h } = repcap;

  // The address -----------------------------------------------------------------------------------------------------

  /** What stands behind `#?` in the address, as a map; the rest of a hash is a section of the page. */
  const read = () => new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");

  /** Write `values` (name -> text, empty ones left out) into the address, without a step in the history. */
  function write(values) {
    const said = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
    const hash = said.size ? `#?${said}` : location.hash.startsWith("#?") ? "#" : location.hash;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }

  // Search ----------------------------------------------------------------------------------------------------------

  const tokens = (text) => text.toLowerCase().split(/[^\p{L}\p{N}.]+/u).filter(Boolean);

  /** Whether the words of a search stand in a model's: numbers as whole words, others from their beginning. */
  function matches(query, words) {
    return tokens(query).every((wanted) =>
      words.some((word) => word === wanted || (!/^[\d.]+$/.test(wanted) && word.startsWith(wanted))));
  }

  // Files -----------------------------------------------------------------------------------------------------------

  const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "paint-order",
    "font-family", "font-size", "font-style", "font-weight"];

  /** The chart in `host` as a file of its own: every style that the page gives it is written into it. */
  function svgText(host) {
    const shown = host.querySelector("svg.chart");
    if (!shown) return null;
    const copy = shown.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const [from, to] = [[shown, ...shown.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
    from.forEach((node, place) => {
      const style = getComputedStyle(node);
      for (const name of DRAWN) to[place].setAttribute(name, style.getPropertyValue(name));
      for (const name of ["class", "tabindex", "role", "style"]) to[place].removeAttribute(name);
    });
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(host.closest("figure")).backgroundColor]]) {
      ground.setAttribute(name, value);
    }
    copy.prepend(ground);
    return new XMLSerializer().serializeToString(copy);
  }

  function download(name, text, kind) {
    const address = URL.createObjectURL(new Blob([text], { type: kind }));
    const link = h("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  /** A button under a chart that saves what `text` gives. */
  const button = (name, kind, words, text) => h("button", { type: "button", class: "quiet save", onclick: () => {
    const held = text();
    if (held) download(name, held, kind);
  } }, words);

  /** Under each chart a button that saves it; and its numbers, where `data` (id -> text) has them. */
  function offer(hosts, data = {}) {
    for (const host of hosts) {
      host.after(button(`${host.id}.svg`, "image/svg+xml", "Save as SVG", () => svgText(host)),
        ...(data[host.id] ? [" ", button(`${host.id}.csv`, "text/csv", "Save as CSV", data[host.id])] : []));
    }
  }

  // The Hub ---------------------------------------------------------------------------------------------------------

  /** A link to the model's page on the Hub, where it has one. */
  const hub = (row) => (row.hub ? h("p", {}, h("a", { href: row.hub, target: "_blank", rel: "noopener noreferrer" }, "This model on the Hub")) : null);

  repcap.sharing = { read, write, tokens, matches, svgText, offer, hub };
})();
