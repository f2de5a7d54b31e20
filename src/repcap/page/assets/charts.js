/* The charts: epsilon over d_model, capacity brackets, distributions of cosines, the calculator's curves.
   Each draws itself anew into its host element; colours of ink and ground come from page.css. */
"use strict";

(() => {
  const { s, h, format, linear, logarithmic, ticks, logTicks, marker, tip, roving } = repcap;

  function canvas(host, height, label) {
    const width = Math.max(280, Math.floor(host.clientWidth));
    const root = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
    return { root, width, height };
  }

  function xAxis(root, scale, values, { y, top, title, middle, show = String }) {
    for (const value of values) {
      const x = scale(value);
      root.append(
        s("line", { class: "grid", x1: x, x2: x, y1: top, y2: y }),
        s("text", { class: "tick", x, y: y + 18, "text-anchor": "middle" }, show(value)),
      );
    }
    if (title) root.append(s("text", { class: "title", x: middle, y: y + 38, "text-anchor": "middle" }, title));
  }

  function yAxis(root, scale, values, { x, right, title, show = String }) {
    for (const value of values) {
      const y = scale(value);
      root.append(
        s("line", { class: "grid", x1: x, x2: right, y1: y, y2: y }),
        s("text", { class: "tick", x: x - 8, y: y + 4, "text-anchor": "end" }, show(value)),
      );
    }
    if (title) root.append(s("text", { class: "title", x, y: 14, "text-anchor": "start" }, title));
  }

  const path = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");

  // epsilon over d_model ------------------------------------------------------------------------------------------

  const CLASSES = { high: [0.2, Infinity], between: [0.1, 0.2], low: [0, 0.1] };

  /** What may stand over the widths. random: of directions drawn at random. border: where a class of ε ends. pad: room.
      above: whether the line's name stands above it, where marks are below. axis, said: the chart and a mark, read aloud. */
  const METRICS = {
    epsilon: {
      value: (row) => row.epsilon, random: (d, z) => z / Math.sqrt(d), border: (epsilon) => epsilon, pad: 1.12,
      title: (z) => `ε = mean + ${z} std of the cosines`, name: (z) => `random directions: ${z}/√d`,
      axis: "epsilon", said: () => "",
    },
    ratio: {
      value: (row) => row.epsilon_ratio, random: () => 1, border: (epsilon, d, z) => (epsilon * Math.sqrt(d)) / z, pad: 1.3,
      title: (z) => `times random: ε over ${z}/√d`, name: (z) => `random directions: ${z}/√d`,
      axis: "epsilon over that of random directions", said: () => "",
    },
    tail: {
      value: (row) => (row.tail_dim === null ? null : row.tail_dim / row.d), random: () => 1, pad: 1.3,
      title: () => "tail dimension over d_model, of 1 pair in 10⁴", name: () => "random directions: 1",
      axis: "tail dimension over d_model", said: (row) => `, tail dimension ${format.significant(row.tail_dim, 3)}`,
      says: "In so many dimensions random directions have as large cosines in one pair of 10⁴. Far below the line rows form clusters.",
    },
    s_max: {
      value: (row) => row.s_max, random: (d) => d / 43.3, pad: 1.3,
      title: () => "s max: rows of one vector that are read apart", name: () => "random directions: about d/43",
      above: true, axis: "s max", said: (row) => `, s max ${format.grouped(row.s_max)}`,
      says: "So many rows of one vector are told apart by the best linear readout, while one idle row in 1000 reads above 0.5.",
    },
  };

  function classBands(root, texts, box, yDomain, y, dDomain, x, border) {
    const steps = Array.from({ length: 41 }, (_, place) => dDomain[0] * (dDomain[1] / dDomain[0]) ** (place / 40));
    const at = (epsilon, d) => Math.min(Math.max(border(epsilon, d), yDomain[0]), yDomain[1]);
    for (const [name, [low, high]] of Object.entries(CLASSES)) {
      const upper = steps.map((d) => [x(d), y(at(high, d))]);
      const lower = steps.map((d) => [x(d), y(at(low, d))]).reverse();
      root.append(s("path", { class: `band ${name}`, d: `${path(upper)}${path(lower).replace("M", "L")}Z` }));
      const edge = at(name === "low" ? 0.1 : low, dDomain[1]);
      const shift = name === "low" ? 15 : -7;
      if (edge > yDomain[0] && edge < yDomain[1] && y(edge) + shift > box.top + 8) {
        root.append(s("text", { class: "band-name", x: box.right - 6, y: y(edge) + shift, "text-anchor": "end" }, `class ${name}`));
        texts.push(...obstacles(box.right - 90, y(edge) + shift, 84));
      }
    }
  }

  /** Small squares along a text, for nameSome: `turn` is its slope (dy/dx). */
  function obstacles(x, y, length, turn = 0) {
    const run = Math.cos(Math.atan(turn));
    return Array.from({ length: Math.ceil(length / 8) + 1 }, (_, place) => [x + 8 * place * run, y + 8 * place * run * turn])
      .map(([px, py]) => [px - 5, py - 9, px + 5, py + 5]);
  }

  const pen = document.createElement("canvas").getContext("2d");

  function widthOf(text) {
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  }

  /** Names beside the points for which there is room; the models farthest from random speak first. */
  function nameSome(layer, placed, box, texts) {
    const taken = [...texts, ...placed.map(({ x, y }) => [x - 7, y - 7, x + 7, y + 7])];
    const free = ([a, b, c, d]) =>
      a > box.left && c < box.right && b > box.top && d < box.bottom &&
      taken.every(([e, f, g, i]) => c < e || g < a || d < f || i < b);
    const order = [...placed].sort((p, q) => q.row.epsilon_ratio - p.row.epsilon_ratio);
    const wanted = order.flatMap((point, place) => (place * 2 < order.length ? [point, order[order.length - 1 - place]] : []));
    for (const { row, x, y } of new Set(wanted)) {
      const width = widthOf(row.label) + 4;
      const seats = [
        [x + 10, y + 4, "start", [x + 9, y - 7, x + 9 + width, y + 7]],
        [x - 10, y + 4, "end", [x - 9 - width, y - 7, x - 9, y + 7]],
        [x, y - 11, "middle", [x - width / 2, y - 22, x + width / 2, y - 8]],
      ];
      const seat = seats.find(([, , , rectangle]) => free(rectangle));
      if (!seat) continue;
      taken.push(seat[3]);
      layer.append(s("text", { class: "point-name", x: seat[0], y: seat[1], "text-anchor": seat[2] }, row.label));
    }
  }

  /** Powers of two to mark on the axis of widths, as many as there is room for; the widths themselves where there is none. */
  function widths(ds, [least, most], x) {
    const powers = Array.from({ length: 60 }, (_, place) => 2 ** place).filter((d) => d >= least && d <= most);
    if (!powers.length) return [...new Set([Math.min(...ds), Math.max(...ds)])];
    const room = 7 * String(powers[powers.length - 1]).length + 8;
    const step = Math.max(1, Math.ceil((room * (powers.length - 1)) / Math.max(1, x(powers[powers.length - 1]) - x(powers[0]))));
    return powers.filter((_, place) => place % step === 0);
  }

  function scatter(host, rows, { metric, z, shown, looks, describe, card, open }) {
    const { value, random, border, pad, title, name, above, axis } = METRICS[metric];
    const phone = host.clientWidth < 560;
    const { root, width, height } = canvas(host, phone ? 400 : 500, `${axis} against d_model, one mark a model`);
    const box = { left: 52, right: width - 8, top: 26, bottom: height - 48 };
    const nullAt = (d) => random(d, z);
    const ds = rows.map((row) => row.d);
    const dDomain = [Math.min(...ds) / 1.22, Math.max(...ds) * 1.3];
    const nulls = dDomain.map(nullAt);
    const values = rows.map(value).filter((number) => number > 0);
    const yDomain = [Math.min(...values, ...nulls) / pad, Math.max(...values, ...nulls) * 1.18];
    const x = logarithmic(dDomain, [box.left, box.right]);
    const y = logarithmic(yDomain, [box.bottom, box.top]);

    const texts = [];
    if (border) classBands(root, texts, box, yDomain, y, dDomain, x, (epsilon, d) => border(epsilon, d, z));
    xAxis(root, x, widths(ds, dDomain, x), { y: box.bottom, top: box.top, title: "d_model (logarithmic)", middle: (box.left + box.right) / 2 });
    yAxis(root, y, logTicks(...yDomain), {
      x: box.left, right: box.right, title: title(z),
    });
    const line = Array.from({ length: 41 }, (_, place) => dDomain[0] * (dDomain[1] / dDomain[0]) ** (place / 40));
    root.append(s("path", { class: "null", d: path(line.map((d) => [x(d), y(nullAt(d))])) }));
    const [from, to] = dDomain.map((d) => [x(d), y(nullAt(d))]);
    const angle = (Math.atan2(to[1] - from[1], to[0] - from[0]) * 180) / Math.PI;
    const seat = [from[0] + 0.03 * (to[0] - from[0]), from[1] + 0.03 * (to[1] - from[1])];
    const apart = above ? -8 : 17;
    root.append(s("text", { class: "null-name", y: apart, transform: `translate(${seat[0]},${seat[1]}) rotate(${angle})` }, name(z)));
    const slope = (to[1] - from[1]) / (to[0] - from[0]);
    texts.push(...obstacles(seat[0], seat[1] + apart, 150, slope), ...obstacles(from[0], from[1], to[0] - from[0], slope));

    const placed = rows.filter((row) => value(row) > 0).map((row) => ({ row, x: x(row.d), y: y(value(row)) }));
    placed.sort((a, b) => a.row.d - b.row.d || a.row.epsilon - b.row.epsilon);
    const [behind, front, names] = [s("g", { class: "behind", "aria-hidden": "true" }), s("g"), s("g", { "aria-hidden": "true" })];
    const active = placed.filter(({ row }) => shown.has(row));
    const draw = ({ row, x: px, y: py }) => s("path", {
      class: "mark", d: marker(looks[row.family].marker, phone ? 5 : 6), fill: looks[row.family].colour, transform: `translate(${px.toFixed(1)},${py.toFixed(1)})`,
    });
    for (const point of placed) if (!shown.has(point.row)) behind.append(draw(point));
    const marks = active.map((point) => {
      const mark = draw(point);
      mark.setAttribute("role", "button");
      mark.setAttribute("aria-label", describe(point.row));
      mark.dataset.id = point.row.id;
      front.append(mark);
      return mark;
    });
    const places = new Map();
    for (const { x: px, y: py } of active) {
      const key = `${Math.round(px)},${Math.round(py)}`;
      places.set(key, { px, py, many: (places.get(key) || { many: 0 }).many + 1 });
    }
    for (const { px, py, many } of places.values()) {
      if (many > 1) names.append(s("text", { class: "many", x: px + 6, y: py - 6 }, `×${many}`));
    }
    nameSome(names, active, box, texts);
    root.append(behind, names, front);
    const twins = (point) => active.filter((other) => Math.hypot(other.x - point.x, other.y - point.y) < 4).map(({ row }) => row);
    follow(host, root, active, marks, { content: (point) => card(...twins(point)), open: (point) => open(point.row) });
    host.replaceChildren(root);
  }

  /** Pointer and keyboard over points: the nearest one lights up and shows its card. */
  function follow(host, root, points, marks, { content, open }) {
    const client = (point) => {
      const frame = root.getBoundingClientRect();
      return [frame.left + point.x, frame.top + point.y];
    };
    const light = (place) => marks.forEach((mark, other) => mark.classList.toggle("lit", other === place));
    const nearest = (event) => {
      const frame = root.getBoundingClientRect();
      const [px, py] = [event.clientX - frame.left, event.clientY - frame.top];
      let best = -1;
      let least = 26;
      points.forEach((point, place) => {
        const distance = Math.hypot(point.x - px, point.y - py);
        if (distance < least) [best, least] = [place, distance];
      });
      return best;
    };
    root.addEventListener("pointermove", (event) => {
      const place = nearest(event);
      light(place);
      root.style.cursor = place < 0 ? "" : "pointer";
      if (place < 0) tip.hide();
      else tip.show(...client(points[place]), content(points[place]));
    });
    root.addEventListener("pointerleave", () => {
      light(-1);
      tip.hide();
    });
    root.addEventListener("click", (event) => {
      const place = nearest(event);
      if (place >= 0) open(points[place]);
    });
    roving(host, marks, {
      focus: (place) => tip.show(...client(points[place]), content(points[place])),
      open: (place) => open(points[place]),
    });
  }

  // Capacity brackets ---------------------------------------------------------------------------------------------

  const phone = ([left, right]) => right - left < 480;

  function exponentScale(rows, range, wide) {
    const all = rows.flatMap((row) => [row.explicit, row.exists, row.law, row.upper])
      .map((limit) => limit && limit.log10_k).filter((value) => Number.isFinite(value) && value > 0);
    const most = Math.max(...all, 1);
    if (wide) {
      const domain = [Math.max(0.5, Math.min(...all) / 1.2), most * 1.15];
      return { scale: logarithmic(domain, range), values: logTicks(...domain, 8) };
    }
    return { scale: linear([0, most * 1.04], range), values: ticks(0, most * 1.04, phone(range) ? 5 : 9) };
  }

  const PIECES = [
    ["exists", "random coding, proven to exist"],
    ["explicit", "explicit set, proven"],
    ["law", "law fitted to packings"],
    ["upper", "upper bound, proven"],
  ];

  function bracketPiece(name, x, y) {
    switch (name) {
      case "explicit": return s("rect", { class: "piece explicit", x: x - 1.5, y: y - 8, width: 3, height: 16 });
      case "upper": return s("path", { class: "piece upper", d: `M${x - 5},${y - 8}h5v16h-5` });
      case "law": return s("path", { class: "piece law", d: marker("D", 5), transform: `translate(${x},${y})` });
      default: return s("circle", { class: "piece gv", cx: x, cy: y, r: 3.2 });
    }
  }

  /** The key of the bracket chart, drawn with the chart's own pieces. */
  function bracketKey() {
    return PIECES.map(([name, text]) => h("span", { class: "key" },
      s("svg", { viewBox: "-10 -10 20 20", class: "glyph", "aria-hidden": "true" }, bracketPiece(name, name === "upper" ? 2 : 0, 0)), text));
  }

  function brackets(host, rows, { wide, describe, card, open }) {
    const narrow = host.clientWidth < 560;
    const step = narrow ? 40 : 24;
    const { root, width, height } = canvas(host, 58 + rows.length * step, "capacity bracket of each model, log10 of the number of directions");
    const gutter = narrow ? 4 : Math.min(230, 14 + 6.7 * Math.max(...rows.map((row) => row.label.length)));
    const box = { left: gutter + 8, right: width - 14, top: 8, bottom: height - 46 };
    const { scale, values } = exponentScale(rows, [box.left, box.right], wide);
    const place = (limit) => scale(Math.max(limit.log10_k, wide ? scale.invert(box.left) : 0));
    xAxis(root, scale, values, {
      y: box.bottom, top: box.top, middle: (box.left + box.right) / 2, show: (value) => `10${format.raised(String(value))}`,
      title: "number of directions k at coherence ε (logarithmic)",
    });
    const marks = rows.map((row, order) => {
      const y = box.top + step * (order + (narrow ? 0.72 : 0.5));
      const sure = row.epsilon < 0.1;
      const mark = s("g", { class: sure ? "range" : "range unsure", role: "button", "aria-label": describe(row) },
        s("rect", { class: "hit", x: 0, y: box.top + step * order, width, height: step }),
        narrow
          ? s("text", { class: "row-name", x: box.left, y: y - 13 }, row.label)
          : s("text", { class: "row-name", x: gutter, y: y + 4, "text-anchor": "end" }, row.label));
      const least = row.at_least;
      const ends = [place(least), place(row.upper)];
      mark.append(s("rect", { class: "bar", x: ends[0], y: y - 4, width: Math.max(1, ends[1] - ends[0]), height: 8 }));
      if (row.law.log10_k < least.log10_k) {
        mark.append(s("line", { class: "short", x1: place(row.law), x2: ends[0], y1: y, y2: y }));
      }
      for (const [name] of PIECES) mark.append(bracketPiece(name, place(row[name]), y));
      mark.dataset.id = row.id;
      const at = () => {
        const frame = root.getBoundingClientRect();
        return [frame.left + Math.min(ends[1], width * 0.62), frame.top + y];
      };
      mark.addEventListener("pointerenter", (event) => tip.show(event.clientX, at()[1], card(row)));
      mark.addEventListener("pointerleave", () => tip.hide());
      mark.addEventListener("click", () => open(row));
      root.append(mark);
      return { mark, at };
    });
    roving(host, marks.map(({ mark }) => mark), {
      focus: (order) => tip.show(...marks[order].at(), card(rows[order])),
      open: (order) => open(rows[order]),
    });
    host.replaceChildren(root);
  }

  Object.assign(repcap, { canvas, xAxis, yAxis, path, METRICS, scatter, brackets, bracketKey });
})();
