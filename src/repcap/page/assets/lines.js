/* The picture of the table of lines: at a few epsilons, over d, the most lines that are known and the most that can be.
   The numbers are those of `repcap table --eps`, by the page's own arithmetic. */
"use strict";

(() => {
  const { h, s, format, logarithmic, logTicks, tip, roving, laws } = repcap;

  const EPSILONS = [0.05, 0.1, 0.2, 0.4];
  /** 49 dimensions from 4 to 16384, evenly on a logarithmic axis, every power of two among them. */
  const DIMENSIONS = [...new Set(Array.from({ length: 49 }, (_, place) => Math.round(4 * 2 ** (place / 4))))];

  /** One row a dimension and an epsilon: what is proven to exist, what is written down, and what no set exceeds. */
  const rows = (dimensions = DIMENSIONS, epsilons = EPSILONS) => epsilons.flatMap((epsilon) => dimensions.map((d) => {
    const { explicit, exists, upper } = laws.capacity(d, epsilon);
    return { d, epsilon, explicit, exists, upper, least: Math.max(explicit.log10_k, exists.log10_k) };
  }));

  const COLUMNS = {
    d: (row) => row.d, epsilon: (row) => row.epsilon,
    "explicit.log10_k": (row) => row.explicit.log10_k, "explicit.coherence": (row) => row.explicit.coherence, "explicit.name": (row) => row.explicit.name,
    "exists.log10_k": (row) => row.exists.log10_k, "upper.log10_k": (row) => row.upper.log10_k, "upper.name": (row) => row.upper.name,
  };

  const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

  /** The rows as CSV (RFC 4180), with the names of `repcap table`. */
  const csv = (found) => [Object.keys(COLUMNS), ...found.map((row) => Object.values(COLUMNS).map((value) => value(row)))]
    .map((cells) => `${cells.map(quoted).join(",")}\n`).join("");

  const range = (row) => `${format.power(row.least)} to ${format.power(row.upper.log10_k)}`;

  /** What is known at one d, as a card. */
  function card(d, found) {
    return h("div", {}, h("strong", {}, `d = ${format.grouped(d)}`), h("dl", {}, found.map((row) =>
      [h("dt", {}, `ε = ${row.epsilon}`), h("dd", {}, row.upper.log10_k - row.least < 1e-9 ? `${format.power(row.least)}, exactly` : range(row))])));
  }

  /** The chart; `pick(d)` is called where the reader chooses a dimension. */
  function draw(host, found, { pick, colours }) {
    const { canvas, xAxis, yAxis, path } = repcap;
    const phone = host.clientWidth < 560;
    const { root, width, height } = canvas(host, phone ? 380 : 460, "known and possible numbers of lines over the dimension");
    const box = { left: 52, right: width - (phone ? 58 : 74), top: 26, bottom: height - 48 };
    const dims = [...new Set(found.map((row) => row.d))];
    const x = logarithmic([dims[0], dims[dims.length - 1]], [box.left, box.right]);
    const highest = Math.max(...found.map((row) => row.upper.log10_k));
    const y = logarithmic([Math.min(...found.map((row) => row.least)), highest * 1.1], [box.bottom, box.top]);
    const powers = Array.from({ length: 13 }, (_, place) => 4 * 2 ** place).filter((_, place) => place % (phone ? 3 : 1) === 0);
    xAxis(root, x, powers, { y: box.bottom, top: box.top, title: "d (logarithmic)", middle: (box.left + box.right) / 2 });
    yAxis(root, y, logTicks(...[box.bottom, box.top].map(y.invert), 9), {
      x: box.left, right: box.right, title: "number of lines k with every |cosine| at most ε", show: (value) => `10${format.raised(String(value))}`,
    });
    const epsilons = [...new Set(found.map((row) => row.epsilon))];
    epsilons.forEach((epsilon, place) => {
      const own = found.filter((row) => row.epsilon === epsilon);
      const [low, high, sets, coding] = [
        own.map((row) => [x(row.d), y(row.least)]), own.map((row) => [x(row.d), y(row.upper.log10_k)]),
        own.map((row) => [x(row.d), y(row.explicit.log10_k)]),
        own.filter((row) => row.exists.log10_k > row.explicit.log10_k).map((row) => [x(row.d), y(row.exists.log10_k)]),
      ];
      const colour = colours[place % colours.length];
      root.append(
        s("path", { class: "room", fill: colour, d: `${path(low)}${path([...high].reverse()).replace("M", "L")}Z` }),
        s("path", { class: "limit", stroke: colour, d: path(high) }),
        s("path", { class: "coding", stroke: colour, d: path(coding) }),
        s("path", { class: "sets", stroke: colour, d: path(sets) }),
        s("text", { class: "point-name", x: box.right + 6, y: (low[low.length - 1][1] + high[high.length - 1][1]) / 2 + 4 }, `ε = ${epsilon}`),
      );
    });
    const edges = dims.map((d, place) => (place ? Math.sqrt(d * dims[place - 1]) : d)).map(x);
    const marks = dims.map((d, place) => {
      const here = found.filter((row) => row.d === d);
      const right = place + 1 < dims.length ? edges[place + 1] : box.right;
      const mark = s("g", { class: "column", role: "button", "aria-label": `d ${d}: ${here.map((row) => `epsilon ${row.epsilon}, ${range(row)}`).join("; ")}` },
        s("rect", { class: "hit", x: edges[place], y: box.top, width: Math.max(1, right - edges[place]), height: box.bottom - box.top }),
        s("line", { class: "cursor", x1: x(d), x2: x(d), y1: box.top, y2: box.bottom }));
      const show = () => {
        const frame = root.getBoundingClientRect();
        tip.show(frame.left + x(d), frame.top + (box.top + box.bottom) / 2, card(d, here));
      };
      mark.addEventListener("pointerenter", show);
      mark.addEventListener("pointerleave", () => tip.hide());
      mark.addEventListener("click", () => pick(d));
      root.append(mark);
      return { mark, show };
    });
    roving(host, marks.map(({ mark }) => mark), { focus: (place) => marks[place].show(), open: (place) => pick(dims[place]) });
    host.replaceChildren(root);
  }

  const KEY = [["limit", "no set has more, proven"], ["sets", "explicit set"], ["coding", "random coding, where it proves more"]];

  /** The key of the chart, drawn with its own strokes. */
  const key = () => KEY.map(([name, text]) => h("span", { class: "key" },
    s("svg", { viewBox: "0 0 26 12", class: "line-glyph", "aria-hidden": "true" }, s("path", { class: `${name} plain-key`, d: "M1,6H25" })), text));

  repcap.lines = { rows, csv, draw, key };
})();
