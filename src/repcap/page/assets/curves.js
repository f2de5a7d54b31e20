/* Charts made of lines: distributions of cosines, and the calculator's curves of log10 k over epsilon. */
"use strict";

(() => {
  const { s, canvas, xAxis, yAxis, path, linear, logarithmic, ticks, logTicks, format, tip, h } = repcap;

  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 3", "10 2 2 2 2 2"];

  const normal = (x, std) => Math.exp(-0.5 * (x / std) ** 2) / (std * Math.sqrt(2 * Math.PI));

  function steps(histogram, x, y, floor) {
    const points = [];
    histogram.density.forEach((density, place) => {
      const level = y(Math.max(density, floor));
      points.push([x(histogram.edges[place]), level], [x(histogram.edges[place + 1]), level]);
    });
    return points;
  }

  /** The interval with all but 0.2 % of the mass of every histogram, and every epsilon. */
  function bulk(rows) {
    const ends = [];
    for (const { histogram, epsilon } of rows) {
      const masses = histogram.density.map((density, place) => density * (histogram.edges[place + 1] - histogram.edges[place]));
      let seen = 0;
      masses.forEach((mass, place) => {
        if (seen + mass > 0.001 && seen < 0.999) ends.push(histogram.edges[place], histogram.edges[place + 1]);
        seen += mass;
      });
      ends.push(epsilon);
    }
    return [Math.min(...ends), Math.max(...ends)];
  }

  /** Histograms of one or more models; `zoom`: the bulk on a linear scale, else the full range on a logarithmic one. */
  function distributions(host, rows, { zoom, colours, height = 380 }) {
    const { root, width } = canvas(host, height, `distribution of pairwise cosines of ${rows.map((row) => row.label).join(", ")}`);
    const box = { left: 52, right: width - 10, top: 26, bottom: height - 48 };
    const all = rows.flatMap(({ histogram }) => histogram.density).filter((density) => density > 0);
    const edges = rows.flatMap(({ histogram }) => [histogram.edges[0], histogram.edges[histogram.edges.length - 1]]);
    const random = rows.length === 1 ? 1 / Math.sqrt(rows[0].d) : null;
    const peak = Math.max(...all, zoom && random ? normal(0, random) : 0);
    const floor = zoom ? 0 : Math.min(...all) / 1.5;
    const xDomain = zoom ? bulk(rows) : [Math.min(...edges), Math.max(...edges)];
    const x = linear(xDomain, [box.left, box.right]);
    const y = zoom ? linear([0, peak * 1.06], [box.bottom, box.top]) : logarithmic([floor, peak * 1.5], [box.bottom, box.top]);
    xAxis(root, x, ticks(...xDomain, width < 560 ? 5 : 9), { y: box.bottom, top: box.top, title: "cosine of a pair of rows", middle: (box.left + box.right) / 2 });
    const values = zoom ? ticks(0, peak, 5) : logTicks(floor, peak * 1.5, 6);
    yAxis(root, y, values, { x: box.left, right: box.right, title: zoom ? "probability density" : "probability density (logarithmic)", show: (value) => (value < 0.01 && value > 0 ? `10${format.raised(String(Math.round(Math.log10(value))))}` : String(value)) });
    const id = `clip-${host.id || "detail"}`;
    root.append(s("clipPath", { id }, s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top + 1 })));
    const lines = s("g", { "clip-path": `url(#${id})` });
    rows.forEach((row, place) => {
      const colour = colours[place % colours.length];
      lines.append(
        s("path", { class: "curve", stroke: colour, "stroke-dasharray": DASHES[place % DASHES.length], d: path(steps(row.histogram, x, y, floor)) }),
        s("line", { class: "curve epsilon", stroke: colour, x1: x(row.epsilon), x2: x(row.epsilon), y1: box.bottom, y2: box.bottom - 34 }),
        s("text", { class: "point-name", x: x(row.epsilon) + 4, y: box.bottom - 24 - 12 * (place % 3) }, rows.length === 1 ? "ε" : `ε ${row.label}`),
      );
    });
    if (random) {
      const grid = Array.from({ length: 161 }, (_, place) => xDomain[0] + ((xDomain[1] - xDomain[0]) * place) / 160);
      const points = grid.map((cosine) => [cosine, normal(cosine, random)]).filter(([, density]) => density > floor);
      lines.append(s("path", { class: "null", d: path(points.map(([cosine, density]) => [x(cosine), y(density)])) }));
    }
    root.append(lines);
    host.replaceChildren(root);
  }

  const CURVES = [
    ["upper", "proven upper bound"],
    ["explicit", "explicit set"],
    ["exists", "random coding"],
    ...repcap.laws.curves.map(({ key, label }) => [key, label]).reverse(),
  ];

  /** log10 k over epsilon at one d: all laws and bounds; `pick(epsilon)` is called where the reader clicks. */
  function capacityCurves(host, { d, epsilon, evaluate, pick }) {
    const phone = host.clientWidth < 560;
    const { root, width, height } = canvas(host, phone ? 340 : 400, `number of directions over epsilon at d = ${d}`);
    const box = { left: 52, right: width - 10, top: 26, bottom: height - 48 };
    const span = [Math.max(0.004, Math.min(0.6 / Math.sqrt(d), 0.5)), 0.9];
    const x = logarithmic(span, [box.left, box.right]);
    const count = 110;
    const grid = Array.from({ length: count + 1 }, (_, place) => span[0] * (span[1] / span[0]) ** (place / count));
    const samples = grid.map((eps) => ({ eps, k: evaluate(d, eps) }));
    const most = Math.max(...samples.map(({ k }) => (Number.isFinite(k.upper) ? k.upper : 0)), 4);
    const floor = Math.max(0.3, Math.log10(d) / 1.6);
    const y = logarithmic([floor, most * 1.2], [box.bottom, box.top]);
    xAxis(root, x, logTicks(...span, phone ? 6 : 9), { y: box.bottom, top: box.top, title: "ε (logarithmic)", middle: (box.left + box.right) / 2 });
    yAxis(root, y, logTicks(floor, most * 1.2, 9), { x: box.left, right: box.right, title: `number of directions k at d = ${d}`, show: (value) => `10${format.raised(String(value))}` });
    const clip = s("clipPath", { id: "clip-curves" }, s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }));
    const lines = s("g", { "clip-path": "url(#clip-curves)" });
    for (const [name] of CURVES) {
      const points = samples.filter(({ k }) => Number.isFinite(k[name]) && k[name] > 0).map(({ eps, k }) => [x(eps), y(Math.max(k[name], floor / 2))]);
      if (points.length) lines.append(s("path", { class: `law-curve ${name}`, d: path(points) }));
    }
    root.append(clip, lines);
    if (epsilon >= span[0] && epsilon <= span[1]) {
      root.append(s("line", { class: "cursor", x1: x(epsilon), x2: x(epsilon), y1: box.top, y2: box.bottom }));
    }
    const within = (event) => {
      const px = event.clientX - root.getBoundingClientRect().left;
      return px >= box.left && px <= box.right ? x.invert(px) : null;
    };
    root.addEventListener("pointermove", (event) => {
      const eps = within(event);
      if (eps === null) return tip.hide();
      const k = evaluate(d, eps);
      const list = h("dl", {}, CURVES.map(([name, text]) => [h("dt", {}, text), h("dd", {}, format.power(k[name]))]));
      return tip.show(event.clientX, event.clientY, h("strong", {}, `ε = ${eps.toFixed(4)}`), list);
    });
    root.addEventListener("pointerleave", () => tip.hide());
    root.addEventListener("click", (event) => {
      const eps = within(event);
      if (eps !== null) pick(Number(eps.toPrecision(3)));
    });
    host.replaceChildren(root);
  }

  const curveKey = () => CURVES.map(([name, text]) => h("span", { class: "key" },
    s("svg", { viewBox: "0 0 26 12", class: "line-glyph", "aria-hidden": "true" }, s("path", { class: `law-curve ${name}`, d: "M1,6H25" })), text));

  Object.assign(repcap, { distributions, capacityCurves, curveKey, DASHES });
})();
