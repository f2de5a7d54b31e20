/* The laws and bounds of repcap, as the library computes them (repcap/laws): log10 k at (d, epsilon). No page here. */
"use strict";

(() => {
  const LN10 = Math.log(10);

  const { constants, laws, transfer } = repcap.tables;

  // Laws: ln k at (d, eps); their constants come with the tables -----------------------------------------------------

  const FORMULAS = {
    jl: (d, eps, { C }) => (d * eps * eps) / C,
    ratio: (d, eps, { C }) => Math.log(d) + (d * eps * eps) / C,
    full: (d, eps, { C, a, b, c }) => (Math.log(d) + ((d ** c * eps * eps) / C) ** (1 / b)) / a,
  };

  /** The sets of constants that the page answers by: those of laws whose formula stands above. */
  const curves = laws.filter(({ law }) => law in FORMULAS);

  // ln Gamma and its half step -------------------------------------------------------------------------------------

  /** ln Gamma(x), x > 0: Stirling's series from 16 on, the recurrence below. */
  function logGamma(x) {
    let shift = 0;
    while (x < 16) {
      shift += Math.log(x);
      x += 1;
    }
    const y = 1 / (x * x);
    const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - (y * 691) / 360360))))) / x;
    return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
  }

  /** ln Gamma(a + 1/2) - ln Gamma(a), without the digits that a difference of two logGamma would lose. */
  function logGammaStep(a) {
    let correction = 0;
    while (a < 20) {
      correction -= Math.log1p(0.5 / a);
      a += 1;
    }
    const x = 1 / (a * a);
    const series = -1 / 8 + x * (1 / 192 + x * (-1 / 640 + x * (17 / 14336 + x * (-31 / 18432 + (x * 691) / 180224))));
    return 0.5 * Math.log(a) + series / a + correction;
  }

  // Gilbert-Varshamov ----------------------------------------------------------------------------------------------

  /** Continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. */
  function betaFraction(x, a, b) {
    const notZero = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
    let numerator = 1;
    let denominator = 1 / notZero(1 - ((a + b) * x) / (a + 1));
    let value = denominator;
    for (let m = 1; m < 20000; m += 1) {
      let change = 1;
      for (const step of [
        (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
        (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
      ]) {
        denominator = 1 / notZero(1 + step * denominator);
        numerator = notZero(1 + step / numerator);
        change = numerator * denominator;
        value *= change;
      }
      if (Math.abs(change - 1) < 4e-16) break;
    }
    return value;
  }

  /** ln of the chance that a random line of R^d makes |cos| >= `cosine` with a given one; logRest is ln(1 - cosine^2). */
  function capOf(d, cosine, logRest) {
    if (d <= 1) return 0;
    const a = (d - 1) / 2;
    const square = cosine * cosine;
    const front = a * logRest + Math.log(cosine) + logGammaStep(a) - 0.5 * Math.log(Math.PI);
    if (square * (d + 4) > 3) return front - Math.log(a) + Math.log(betaFraction(1 - square, a, 0.5));
    return Math.log1p(-2 * Math.exp(front) * betaFraction(square, 0.5, a));
  }

  const logCap = (d, eps) => capOf(d, eps, Math.log1p(-eps) + Math.log1p(eps));

  /** The cap of half the angle of eps. */
  const logHalfCap = (d, eps) => capOf(d, Math.sqrt(0.5 * (1 + eps)), Math.log(0.5 * (1 - eps)));

  // Upper bounds ---------------------------------------------------------------------------------------------------

  function logBinomial(top, bottom) {
    const few = Math.min(bottom, top - bottom);
    if (few > 200) return logGamma(top + 1) - logGamma(bottom + 1) - logGamma(top - bottom + 1);
    let sum = 0;
    for (let i = 0; i < few; i += 1) sum += Math.log((top - i) / (i + 1));
    return sum;
  }

  /** The most lines in the plane with coherence at most eps: the largest k with cos(pi/k) <= eps, 2 at least. */
  function linesInPlane(eps) {
    const rest = 1 - eps - constants.plane_rounding;
    return Math.max(2, Math.floor((Math.PI / (2 * Math.asin(Math.sqrt(0.5 * rest)))) * (1 + 1e-15)));
  }

  /** ln of Levenshtein's bound and the degree of its polynomial, or null beyond constants.most_degree; d >= 2. */
  function levenshtein(d, eps) {
    if (eps * eps * (d + 2) <= 1) return [Math.log(d) + Math.log1p(-eps * eps) - Math.log1p(-d * eps * eps), 2];
    const small = 1e-200;
    let [pOld, p, logP] = [1, eps, 0];
    let [gBefore, gOld, g, logG, logGBefore] = [1, 1, eps, 0, 0];
    let n = 1;
    while (g > 0) {
      if (n >= constants.most_degree) return null;
      [pOld, p] = [p, ((2 * n + d - 2) * eps * p - n * pOld) / (n + d - 2)];
      [gBefore, logGBefore] = [gOld, logG];
      [gOld, g] = [g, ((2 * n + d) * eps * g - n * gOld) / (n + d)];
      n += 1;
      if (Math.abs(p) + Math.abs(pOld) < small) [p, pOld, logP] = [p / small, pOld / small, logP + Math.log(small)];
      if (gOld < small) [g, gOld, logG] = [g / small, gOld / small, logG + Math.log(small)];
    }
    const quotient = Math.log(gBefore) + logGBefore - Math.log(-p) - logP;
    const [larger, smaller] = [Math.max(quotient, 0), Math.min(quotient, 0)];
    return [logBinomial(d + n - 3, n - 2) + larger + Math.log1p(Math.exp(smaller - larger)), n];
  }

  /** eps with what counts as rounding: sets are admitted up to it and limits hold up to it (repcap/domain.py). */
  const loosened = (eps) => eps + constants.slack * Math.min(eps, 1 - eps);

  /** log10 of the whole number of lines that a bound allows. */
  const floored = (log) => (log > constants.whole
    ? (log / LN10) * (1 + constants.rounding)
    : Math.log10(Math.floor(Math.exp(log) * (1 + constants.floor_slack))));

  /** The least coherence of d + e lines by the bound of Bukh and Cox. */
  const fewLines = (d, e) => (e * (e + 1)) / ((d + e) * (2 + (e - 1) * Math.sqrt(e + 2)) - e * (e + 1));

  /** The most lines by the bound of Bukh and Cox, or null where it says nothing. */
  function bukhCox(d, eps) {
    let [low, high] = [0, d === 3 ? 3 : Math.floor(1.5 * Math.sqrt(d)) + 1];
    if (fewLines(d, high) <= eps) return null;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (fewLines(d, middle) <= eps) low = middle;
      else high = middle;
    }
    return d + low;
  }

  /** ln of Levenshtein's bound on points of the sphere in R^n with cosines at most s >= 0. */
  function logPoints(n, s) {
    let [pOld, p, gOld, g, j] = [1, s, 1, s, 1];
    while (g > 0) {
      [pOld, p] = [p, ((2 * j + n - 2) * s * p - j * pOld) / (j + n - 2)];
      [gOld, g] = [g, ((2 * j + n) * s * g - j * gOld) / (j + n)];
      j += 1;
      if (Math.abs(p) + Math.abs(pOld) < 1e-200) [p, pOld] = [p / 1e-200, pOld / 1e-200];
      if (Math.abs(g) + Math.abs(gOld) < 1e-200) [g, gOld] = [g / 1e-200, gOld / 1e-200];
    }
    const after = ((2 * j + n - 2) * s * p - j * pOld) / (j + n - 2);
    if (p < after) return logBinomial(j + n - 3, j - 1) + Math.log((2 * j + n - 3) / (n - 1) - (pOld - p) / ((1 - s) * p));
    return logBinomial(j + n - 2, j) + Math.log((2 * j + n - 1) / (n - 1) - ((1 + s) * (p - after)) / ((1 - s) * (p + after)));
  }

  const points = new Map();

  /** ln of the transfer of Levenshtein's bound to caps (Kabatiansky and Levenshtein), or null. */
  function transferred(d, eps) {
    if (eps < constants.transfer_least || d < 4 || d > constants.transfer_most_d) return null;
    if (!points.has(d)) points.set(d, transfer.cosines.map((s) => logPoints(d - 1, s)));
    let best = Infinity;
    transfer.cosines.forEach((s, place) => {
      const square = 0.5 * (1 - s);
      const rest = Math.min(1 - eps, 2 - 0.5 / square);
      if (rest <= 1e-12) return;
      const left = Math.max(1 - (0.5 * rest) / square, 1e-24);
      best = Math.min(best, points.get(d)[place] - capOf(d, Math.sqrt(left), Math.log1p(-left)));
    });
    return best;
  }

  function upper(d, given) {
    if (d === 1) return { log10_k: 0, name: "a line has one direction (exact, d = 1)" };
    if (d === 2) return { log10_k: Math.log10(linesInPlane(given)), name: "equal angles in the plane (exact, d = 2)" };
    const eps = loosened(given);
    const candidates = [[-logHalfCap(d, eps), "volume of caps"]];
    const found = levenshtein(d, eps);
    if (found) candidates.push([found[0], found[1] === 2 ? "Welch (order 1)" : `Levenshtein (degree ${found[1]})`]);
    if (eps < 1 / Math.sqrt(d)) candidates.push([Math.log(d) + Math.log1p(d) - Math.log(2), "orthoplex (Rankin)"]);
    const moved = transferred(d, eps);
    if (moved !== null) candidates.push([moved, transfer.name]);
    const few = bukhCox(d, eps);
    if (few !== null) candidates.push([Math.log(few), "Bukh-Cox"]);
    const [log, name] = candidates.reduce((best, next) => (next[0] < best[0] ? next : best));
    return { log10_k: floored(log), name };
  }

  const entry = (log) => ({ log10_k: log / LN10 });

  /** Every law and bound at (d, eps); d a whole number >= 1, 0 < eps < 1. */
  function capacity(d, eps) {
    return {
      ...Object.fromEntries(curves.map(({ key, law, params }) => [key, entry(FORMULAS[law](d, eps, params))])),
      exists: entry(Math.max(-logCap(d, eps), Math.log(d))),
      upper: upper(d, eps),
      explicit: repcap.laws.construction(d, eps),
    };
  }

  repcap.laws = { curves, capacity, upper, loosened, linesInPlane, logCap, logGamma, logGammaStep };
})();
