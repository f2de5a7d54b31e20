/* What the other scripts of the page share: elements, numbers as text, scales, marker shapes, the tooltip. */
"use strict";

const repcap = { tables: JSON.parse(document.getElementById("data").textContent).tables };

(() => {
  const SVG = "http://www.w3.org/2000/svg";

  /** Append children; strings become text nodes, so nothing that a record says is ever read as markup. */
  function fill(node, children) {
    for (const child of children.flat(Infinity)) {
      if (child !== null && child !== undefined && child !== false) node.append(child);
    }
    return node;
  }

  function set(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "text") node.textContent = value;
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    return node;
  }

  /** An HTML element: h("button", {type: "button", onclick: f}, "text"). */
  const h = (tag, attributes = {}, ...children) => fill(set(document.createElement(tag), attributes), children);

  /** An SVG element. */
  const s = (tag, attributes = {}, ...children) => fill(set(document.createElementNS(SVG, tag), attributes), children);

  const byId = (id) => document.getElementById(id);

  // Numbers as text -----------------------------------------------------------------------------------------------

  const SUPERSCRIPT = { "-": "⁻", ".": "·" };
  const DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const raised = (text) => [...text].map((sign) => SUPERSCRIPT[sign] || DIGITS[Number(sign)]).join("");

  /** A whole number with narrow spaces between thousands, which do not break. */
  const groups = (value) => Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");

  /** A number of vectors given by its log10, as people read it: 139, 3.99 × 10⁷, 10⁴¹⁶. */
  function power(log10) {
    if (log10 === null || log10 === undefined || Number.isNaN(log10)) return "none";
    if (log10 === Infinity) return "unbounded";
    if (log10 === -Infinity) return "0";
    if (log10 < 5) {
      const value = 10 ** log10;
      return value < 1000 ? String(Number(value.toPrecision(3))) : groups(value);
    }
    if (log10 >= 100) return `10${raised(String(Math.round(log10)))}`;
    let exponent = Math.floor(log10);
    let lead = (10 ** (log10 - exponent)).toFixed(2);
    if (Number(lead) >= 10) [exponent, lead] = [exponent + 1, "1.00"];
    return `${lead} × 10${raised(String(exponent))}`;
  }

  const significant = (value, digits = 4) =>
    value === null || value === undefined ? "" : Number(value.toPrecision(digits)).toString();

  const fixed = (value, digits) => (value === null || value === undefined ? "" : value.toFixed(digits));

  const grouped = (value) =>
    value === null || value === undefined ? "" : groups(value);

  const format = { power, significant, fixed, grouped, raised };

  // Scales --------------------------------------------------------------------------------------------------------

  function linear([a, b], [u, v]) {
    const scale = (x) => u + ((x - a) / (b - a)) * (v - u);
    scale.invert = (y) => a + ((y - u) / (v - u)) * (b - a);
    return scale;
  }

  function logarithmic([a, b], range) {
    const inner = linear([Math.log(a), Math.log(b)], range);
    const scale = (x) => inner(Math.log(x));
    scale.invert = (y) => Math.exp(inner.invert(y));
    return scale;
  }

  /** Round values between a and b, about `count` of them. */
  function ticks(a, b, count) {
    const rough = (b - a) / Math.max(1, count);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((lead) => lead * unit).find((candidate) => candidate >= rough);
    const found = [];
    for (let place = Math.ceil(a / step - 1e-9); place * step <= b + step * 1e-9; place += 1) {
      found.push(Number((place * step).toPrecision(12)));
    }
    return found;
  }

  /** 1, 2, 5 in each decade between a and b; only powers of ten where that would be too many. */
  function logTicks(a, b, most = 10) {
    const found = [];
    for (let decade = Math.floor(Math.log10(a)); decade <= Math.ceil(Math.log10(b)); decade += 1) {
      for (const lead of [1, 2, 5]) found.push(Number((lead * 10 ** decade).toPrecision(6)));
    }
    const inside = found.filter((value) => value >= a && value <= b);
    if (inside.length < 3) return ticks(a, b, Math.min(most, 6)); // a narrow range: round values will do
    return inside.length <= most ? inside : inside.filter((value) => Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6));
  }

  // Marker shapes (the names are matplotlib's, so that the page and the figures agree) ----------------------------

  const polygon = (points) => `M${points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join("L")}Z`;
  const turned = (points, angle) =>
    points.map(([x, y]) => [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)]);

  function cross(r) {
    const w = r * 0.36;
    return [[-w, -r], [w, -r], [w, -w], [r, -w], [r, w], [w, w], [w, r], [-w, r], [-w, w], [-r, w], [-r, -w], [-w, -w]];
  }

  function star(r) {
    const points = [];
    for (let place = 0; place < 10; place += 1) {
      const [length, angle] = [place % 2 ? r * 0.45 : r, (place * Math.PI) / 5 - Math.PI / 2];
      points.push([length * Math.cos(angle), length * Math.sin(angle)]);
    }
    return points;
  }

  /** Path of a marker of about the area of a circle of radius r, around the origin. */
  function marker(shape, r) {
    const square = (half) => [[-half, -half], [half, -half], [half, half], [-half, half]];
    const triangle = [[0, -r * 1.25], [r * 1.15, r * 0.8], [-r * 1.15, r * 0.8]];
    switch (shape) {
      case "s": return polygon(square(r * 0.88));
      case "D": return polygon(turned(square(r * 0.86), Math.PI / 4));
      case "^": return polygon(triangle);
      case "v": return polygon(triangle.map(([x, y]) => [x, -y]));
      case "P": return polygon(cross(r * 1.12));
      case "X": return polygon(turned(cross(r * 1.15), Math.PI / 4));
      case "*": return polygon(star(r * 1.4));
      default: return `M${-r},0A${r},${r} 0 1 0 ${r},0A${r},${r} 0 1 0 ${-r},0Z`;
    }
  }

  /** A small inline picture of a family's marker. */
  function glyph(look) {
    return s("svg", { class: "glyph", viewBox: "-8 -8 16 16", "aria-hidden": "true" },
      s("path", { d: marker(look.marker, 5.2), fill: look.colour, class: "mark" }));
  }

  // The tooltip ---------------------------------------------------------------------------------------------------

  const tip = {
    /** Show `content` (nodes) beside the client point (x, y), inside the window. */
    show(x, y, ...content) {
      const box = byId("tip");
      box.replaceChildren(...content);
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      const right = x + 16 + width < document.documentElement.clientWidth;
      const left = right ? x + 16 : Math.max(8, x - width - 16);
      const top = Math.min(Math.max(8, y - height / 2), Math.max(8, window.innerHeight - height - 8));
      box.style.left = `${left}px`;
      box.style.top = `${top}px`;
    },
    hide() {
      byId("tip").hidden = true;
    },
  };

  /** Keyboard travel through the marks of a chart: one tab stop, arrows move, Enter opens. */
  function roving(container, marks, { focus, open }) {
    let at = 0;
    marks.forEach((mark, place) => {
      mark.setAttribute("tabindex", place === 0 ? "0" : "-1");
      mark.addEventListener("focus", () => {
        marks[at].setAttribute("tabindex", "-1");
        at = place;
        mark.setAttribute("tabindex", "0");
        focus(place, mark);
      });
      mark.addEventListener("blur", () => tip.hide());
      mark.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const target = event.key === "Home" ? 0 : event.key === "End" ? marks.length - 1 : step && place + step;
        if (target !== undefined && marks[target]) {
          event.preventDefault();
          marks[target].focus();
        } else if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          open(place);
        } else if (event.key === "Escape") tip.hide();
      });
    });
  }

  Object.assign(repcap, { h, s, fill, byId, format, linear, logarithmic, ticks, logTicks, marker, glyph, tip, roving });
})();
