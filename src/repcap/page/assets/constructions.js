/* The best explicit set of lines at (d, epsilon), as repcap/constructions chooses it.
   A block is {name, d, log, coherence}: log is ln k, because k itself may have thousands of digits. */
"use strict";

(() => {
  const { loosened } = repcap.laws;
  const { sporadic, steiner, inner, constants } = repcap.tables;
  const LN2 = Math.log(2);
  const fits = (coherence, eps) => coherence <= loosened(eps);
  const block = (name, d, log, coherence) => ({ name, d, log, coherence });
  const logSum = (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
  const bitLength = (d) => Math.floor(Math.log2(d + 0.5)) + 1;

  // Prime powers, Hadamard orders ----------------------------------------------------------------------------------

  function cached(compute) {
    const known = new Map();
    return (n) => {
      if (!known.has(n)) known.set(n, compute(n));
      return known.get(n);
    };
  }

  const isPrime = cached((n) => {
    if (n < 4) return n >= 2;
    if (n % 2 === 0 || n % 3 === 0) return false;
    for (let i = 5; i * i <= n; i += 6) if (n % i === 0 || n % (i + 2) === 0) return false;
    return true;
  });

  /** [p, m] with n = p^m, or null. */
  const primePower = cached((n) => {
    if (n < 2) return null;
    for (let m = bitLength(n); m > 0; m -= 1) {
      const p = Math.round(n ** (1 / m));
      if (p >= 2 && p ** m === n && isPrime(p)) return [p, m];
    }
    return null;
  });

  /** [p, m] of the largest odd prime up to `limit` and of the odd prime powers above it. */
  const oddPrimePowers = cached((limit) => {
    const found = [];
    for (let q = limit; q > 2; q -= 1) {
      const factors = primePower(q);
      if (factors && factors[0] !== 2) {
        found.push(factors);
        if (factors[1] === 1) break;
      }
    }
    return found;
  });

  const isHadamardOrder = cached((n) => {
    if (n === 1 || n === 2) return true;
    if (n % 4) return false;
    const half = n / 2 - 1;
    if (primePower(n - 1) || (half % 4 === 1 && primePower(half))) return true;
    if (n % 2 === 0 && isHadamardOrder(2) && isHadamardOrder(n / 2)) return true;
    for (let a = 4; a * a <= n; a += 4) if (n % a === 0 && isHadamardOrder(a) && isHadamardOrder(n / a)) return true;
    return false;
  });

  // Families: each gives blocks with at most d dimensions and coherence <= eps -------------------------------------

  const binomials = (n, upTo) => {
    let [term, sum] = [1, 0];
    for (let i = 1; i <= upTo; i += 1) {
      term = (term * (n - i + 1)) / i;
      sum += term;
    }
    return sum;
  };

  function small(d, eps, found) {
    found.push(block("orthonormal basis", d, Math.log(d), 0));
    const k = repcap.laws.linesInPlane(eps);
    if (d >= 2 && k >= 3) found.push(block(`${k} equal angles in the plane`, 2, Math.log(k), Math.cos(Math.PI / k)));
    for (const [lines, dim, coherence, name] of sporadic) {
      if (dim <= d && fits(coherence, eps)) found.push(block(name, dim, Math.log(lines), coherence));
    }
  }

  /** Families of one block for each d, whose smaller blocks may do better in a sum. */
  function summed(d, eps, found) {
    if (d >= 3 && fits(1 / d, eps)) found.push(block("simplex", d, Math.log(d + 1), 1 / d));
    if (d >= 3 && fits(0.5, eps)) found.push(block(`root system D${d}`, d, Math.log(d * (d - 1)), 0.5));
    for (let q = 2 * d - 1 - ((2 * d - 2) % 4); q > 4 && fits(1 / Math.sqrt(q), eps); q -= 4) {
      if (!primePower(q)) continue;
      found.push(block(`conference matrix q=${q}`, (q + 1) / 2, Math.log(q + 1), 1 / Math.sqrt(q)));
      break;
    }
    let best = null;
    for (const [b, v, r, size] of steiner) {
      if (b > d) break;
      if (fits(1 / r, eps) && (!best || v * (r + 1) > best.k)) best = { k: v * (r + 1), b, v, r, size };
    }
    if (best) found.push(block(`Steiner equiangular S(2,${best.size},${best.v})`, best.b, Math.log(best.k), 1 / best.r));
  }

  /** Families in R^(2^M): signs times 2^(-M/2). */
  function binary(d, eps, found) {
    for (let bits = 2; bits < bitLength(d); bits += 1) {
      const size = 2 ** bits;
      const flat = 2 ** (-bits / 2);
      if (fits(flat, eps)) found.push(block("basis + Hadamard", size, (bits + 1) * LN2, flat));
      if (bits % 2 === 0 && fits(flat, eps)) found.push(block("Kerdock (real MUBs)", size, Math.log(size) + Math.log(size / 2 + 1), flat));
      if (bits >= 4 && bits % 2 === 0) delsarteGoethals(bits, eps, found);
      if (bits >= 3 && bits % 2) quadraticForms(bits, eps, found);
      if (bits >= 3) {
        const t = Math.floor((loosened(eps) * 2 ** (bits / 2)) / 2) + 1;
        const coherence = 2 * (t - 1) * flat;
        if (t >= 2 && coherence < 1) found.push(block(`dual BCH t=${t}`, size, logSum(t * bits * LN2, bits * LN2), coherence));
        if (fits(0.5, eps)) {
          let log = -LN2;
          for (let i = 1; i <= bits; i += 1) log += Math.log(2 ** i + 2);
          found.push(block("Barnes-Wall lattice", size, log, 0.5));
        }
      }
      if (bits >= 4) reedMuller(bits, eps, found);
    }
  }

  function delsarteGoethals(bits, eps, found) {
    for (let r = bits / 2 - 1; r >= 1; r -= 1) {
      const coherence = 2 ** (r - bits / 2);
      if (!fits(coherence, eps)) continue;
      const log = logSum((bits + (bits - 1) * (r + 1)) * LN2, bits * LN2);
      found.push(block(`Delsarte-Goethals r=${r}`, 2 ** bits, log, coherence));
      return;
    }
  }

  function quadraticForms(bits, eps, found) {
    const half = (bits - 1) / 2;
    for (let rank = 1; rank <= half; rank += 1) {
      if (!fits(2 ** -rank, eps)) continue;
      const log = logSum((bits + bits * (half - rank + 1)) * LN2, bits * LN2);
      found.push(block(rank < half ? `quadratic forms h=${rank}` : "Gold", 2 ** bits, log, 2 ** -rank));
      return;
    }
  }

  function reedMuller(bits, eps, found) {
    for (let r = bits - 1; r >= 3; r -= 1) {
      const coherence = 1 - 2 ** (1 - r);
      if (!fits(coherence, eps)) continue;
      found.push(block(`Reed-Muller r=${r}`, 2 ** bits, binomials(bits, r) * LN2, coherence));
      return;
    }
  }

  function exponentialSums(d, eps, found) {
    for (const [p, m] of oddPrimePowers(Math.floor(d / 2))) {
      const q = p ** m;
      const n = Math.floor(loosened(eps) * Math.sqrt(q)) + 1;
      const coherence = (n - 1) / Math.sqrt(q);
      if (n >= 2 && coherence < 1) {
        found.push(block(`exponential sums q=${q} degree<=${n}`, 2 * q, LN2 + (n - Math.floor(n / p)) * Math.log(q), coherence));
      }
    }
  }

  /** For each bits, ascending: the least element of the cyclotomic coset of i under doubling mod 2^bits - 1. */
  const leaders = cached((bits) => {
    const n = 2 ** bits - 1;
    const least = new Int32Array(n - 1);
    for (let i = 1; i < n; i += 1) {
      let turned = i;
      let smallest = i;
      for (let step = 1; step < bits; step += 1) {
        turned = ((turned << 1) & n) | (turned >> (bits - 1));
        if (turned < smallest) smallest = turned;
      }
      least[i - 1] = smallest;
    }
    return least.sort();
  });

  /** The first place in an ascending list whose value is at least `value`. */
  function placeOf(list, value) {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function extendedBch(d, eps, found) {
    for (let bits = 3; bits < bitLength(d) && bits <= constants.most_bits; bits += 1) {
      const size = 2 ** bits;
      let delta = Math.max(1, Math.ceil(0.5 * size * (1 - loosened(eps)) - 1e-6) - 1);
      if (!fits(1 - (2 * (delta + 1)) / size, eps)) delta += 1;
      const list = leaders(bits);
      const first = placeOf(list, delta);
      const k = 1 + list.length - first;
      if (first === list.length || k - 1 <= bits) continue;
      const distance = list[first] + 1;
      found.push(block(`extended BCH [${size},${k},${distance}]`, size, (k - 1) * LN2, 1 - (2 * distance) / size));
    }
  }

  function reedSolomonSigns(d, eps, found) {
    for (let m = 1; m < Math.min(bitLength(d) - 1, 30); m += 1) {
      const length = Math.min(2 ** (m + 1), Math.floor(d / 2 ** m));
      const k = Math.floor(loosened(eps) * length) + 1;
      if (k < 2 || k > length) continue;
      for (const points of new Set([length, Math.ceil((k - 1) / loosened(eps))])) {
        const name = `RS[${points},${k}] over GF(${2 ** (m + 1)}) with RM(1,${m})`;
        found.push(block(name, points * 2 ** m, ((m + 1) * k - 1) * LN2, (k - 1) / points));
      }
    }
  }

  function reedSolomonLines(d, eps, found) {
    let best = null;
    for (const [dim, mu, q, logQ, name, field] of inner) {
      const length = Math.min(Math.floor(d / dim), q);
      const slack = loosened(eps) - mu;
      if (slack < 0 || length < 2) continue;
      const k = Math.min(length, Math.floor(((length * slack) / (1 - mu)) * (1 + 1e-13)) + 1);
      if (k > 1 && (!best || k * logQ > best.log)) best = { log: k * logQ, dim, mu, name, field, length, k };
    }
    if (!best) return;
    const { log, dim, mu, name, field, length, k } = best;
    const fewest = Math.ceil((((k - 1) * (1 - mu)) / (loosened(eps) - mu)) * (1 - 1e-13));
    for (const points of new Set([length, Math.max(k, fewest)])) {
      const title = `RS[${points},${k}] over GF(${field}) with ${name} in R^${dim}`;
      found.push(block(title, points * dim, log, (k - 1 + (points - k + 1) * mu) / points));
    }
  }

  function blocks(d, eps) {
    const found = [];
    for (const family of [small, summed, binary, exponentialSums, extendedBch, reedSolomonSigns, reedSolomonLines]) {
      family(d, eps, found);
    }
    return found;
  }

  // Filling R^d with blocks ----------------------------------------------------------------------------------------

  const sameTo = (tolerance, a, b) => Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a));

  /** a before b by the first of their worths that differs. */
  function better(a, b, worth) {
    const [u, v] = [worth(a), worth(b)];
    const place = u.findIndex((value, i) => !sameTo(1e-14, value, v[i]));
    return place >= 0 && u[place] > v[place];
  }

  const WORTHS = [
    (part) => [part.log, -part.coherence, -part.d],
    (part) => [part.log, -part.d],
    (part) => [part.log - Math.log(part.d), -part.coherence, -part.d],
  ];

  const NOTHING = { log: -Infinity, parts: [] };

  const joined = (a, b) => ({
    log: Math.min(a.log, b.log) === -Infinity ? Math.max(a.log, b.log) : logSum(a.log, b.log),
    parts: [...a.parts, ...b.parts],
  });

  const copied = ({ log, parts }, copies) => ({
    log: log + Math.log(copies),
    parts: parts.map(([part, count]) => [part, count * copies]),
  });

  /** The block of the greatest worth first, then again; from whichever remainder on the tiles are better. */
  function filling(d, eps, worth) {
    let [found, tiled] = [NOTHING, NOTHING];
    for (let left = d; left > 0; ) {
      if (d > constants.exact_sums) {
        const ended = joined(found, tiles(left, eps));
        if (ended.log > tiled.log + 1e-14) tiled = ended;
        if (left <= constants.exact_sums) return tiled;
      }
      const best = blocks(left, eps).reduce((top, next) => (better(next, top, worth) ? next : top));
      const copies = Math.floor(left / best.d);
      found = joined(found, copied({ log: best.log, parts: [[best, 1]] }, copies));
      left -= copies * best.d;
    }
    return tiled.log > found.log + 1e-14 ? tiled : found;
  }

  /** Best sums in as many dimensions as are summed exactly, side by side, and the best sum in what is left. */
  function tiles(d, eps) {
    const left = d % constants.exact_sums;
    const rest = left ? bestSum(left, eps) : NOTHING;
    const copies = (d - left) / constants.exact_sums;
    return copies ? joined(copied(bestSum(constants.exact_sums, eps), copies), rest) : rest;
  }

  const sums = { eps: NaN, found: new Map() };

  function bestSum(d, eps) {
    if (sums.eps !== eps) Object.assign(sums, { eps, found: new Map() });
    if (!sums.found.has(d)) sums.found.set(d, summedBest(d, eps));
    return sums.found.get(d);
  }

  /** The best sum of the blocks of R^d and of the smaller ones that are worth it, by dynamic programming. */
  function summedBest(d, eps) {
    const all = [block("orthonormal basis", 1, 0, 0), ...blocks(d, eps)];
    for (let size = 2; size < d; size += 1) summed(size, eps, all);
    const single = new Map();
    for (const next of all) {
      const held = single.get(next.d);
      if (!held || next.log > held.log || (next.log === held.log && next.coherence < held.coherence)) single.set(next.d, next);
    }
    const [most, last, useful] = [[-Infinity], [0], []];
    for (let size = 1; size <= d; size += 1) {
      let [log, part] = [-Infinity, 0];
      for (const used of useful) {
        const rest = most[size - used];
        const sum = rest === -Infinity ? single.get(used).log : logSum(single.get(used).log, rest);
        if (sum > log) [log, part] = [sum, used];
      }
      if (single.has(size) && single.get(size).log > log + 1e-13) {
        [log, part] = [single.get(size).log, size];
        useful.push(size);
      }
      most.push(log);
      last.push(part);
    }
    const copies = new Map();
    for (let left = d; left > 0; left -= last[left]) copies.set(last[left], (copies.get(last[left]) || 0) + 1);
    const parts = [...copies].map(([size, count]) => [single.get(size), count]);
    return { log: most[d], parts: parts.sort((a, b) => b[0].log - a[0].log || a[0].d - b[0].d) };
  }

  function nameOf(parts) {
    if (parts.length === 1 && parts[0][1] === 1) return parts[0][0].name;
    const words = parts.slice(0, 3).map(([part, copies]) => {
      if (part.coherence === 0) return part.d * copies === 1 ? "1 axis" : `${part.d * copies} axes`;
      return copies > 1 ? `${copies} x ${part.name} in R^${part.d}` : `${part.name} in R^${part.d}`;
    });
    return [...words, ...(parts.length > 3 ? ["smaller parts"] : [])].join(" + ");
  }

  /** {log10_k, name, coherence} of the explicit set with the most lines in R^d at coherence <= eps. */
  repcap.laws.construction = (d, eps) => {
    const found = WORTHS.map((worth) => filling(d, eps, worth));
    if (d <= constants.exact_sums) found.push(bestSum(d, eps));
    const { log, parts } = found.reduce((top, next) => {
      const fewer = sameTo(1e-14, next.log, top.log) && next.parts.length < top.parts.length;
      return fewer || next.log > top.log + 1e-13 * Math.max(1, top.log) ? next : top;
    });
    return { log10_k: log / Math.LN10, name: nameOf(parts), coherence: Math.max(...parts.map(([part]) => part.coherence)) };
  };
})();
