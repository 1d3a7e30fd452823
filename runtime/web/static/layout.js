// Layered layout of a graph, after Sugiyama: ranks by the longest path, places for edges that pass a rank, fewer crossings
// by sweeps, then straighter edges. Edges that lead back, round a loop, have no part in that: they pass beside all cards,
// each in a lane of its own. The same graph is always laid out in the same way.

const SWEEPS = 12, STRAIGHTENINGS = 12, MARGIN = 8, LANE = 30;

// `edges`: pairs of indices, and whether they lead back. The centres of the cards, the points of each edge, and the size
// of it all.
export function layout(count, edges, { width, height, between, apart, upright }) {
  const [along, across] = upright ? [height, width] : [width, height];
  const forward = edges.filter(([, , back]) => !back);
  const rank = ranks(count, forward);
  const { ups, downs, rankOf, chains } = withPlaces(count, forward, rank);
  const layers = untangled(rankOf, ups, downs);
  const v = straightened(layers, ups, downs, (n) => (n < count ? across : across / 4), between);
  const u = rankOf.map((r) => MARGIN + along / 2 + r * (along + apart));
  const point = (a, b) => (upright ? { x: b, y: a } : { x: a, y: b });
  const least = Math.min(...v.slice(0, count)), most = Math.max(...v), first = Math.min(...v);
  const shift = MARGIN + Math.max(across / 2 - (least - first), 0) - first;
  const at = v.map((each) => each + shift);
  const beside = Math.max(...at.slice(0, count).map((each) => each + across / 2), most + shift) + MARGIN;
  const far = beside + LANE * (edges.length - forward.length);
  const isWide = edges.some(([from, , back]) => back && rank[from] === Math.max(...rank));
  const long = Math.max(...u) + along / 2 + (isWide ? apart / 2 : 0) + MARGIN;
  let ahead = 0, lanes = 0;
  const paths = edges.map(([from, to, back]) => {
    if (back) {
      const lane = beside + LANE * (lanes += 1) - LANE / 2, turn = apart / 2;
      const [a, b] = [u[from] + along / 2, u[to] - along / 2], [out, home] = [a + turn, Math.max(b - turn, MARGIN / 2)];
      return [point(a, at[from]), point(out, at[from]), point(out, lane), point((a + b) / 2, lane), point(home, lane), point(home, at[to]), point(b, at[to])];
    }
    const inner = chains[ahead++].flatMap((n) => [point(u[n] - along / 2, at[n]), point(u[n] + along / 2, at[n])]);
    const begin = point(u[from] + along / 2, at[from]), end = point(u[to] - along / 2, at[to]);
    if (inner.length) return [begin, ...inner, end];
    const [a, b] = [u[from] + along / 2, u[to] - along / 2];
    return [begin, point(a + (b - a) / 4, at[from]), point((a + b) / 2, (at[from] + at[to]) / 2), point(b - (b - a) / 4, at[to]), end];
  });
  return { width: upright ? far : long, height: upright ? long : far, nodes: at.slice(0, count).map((b, n) => point(u[n], b)), paths };
}

// Each as near behind its last input as can be; a source as near before its first output. 
function ranks(count, edges) {
  const outs = Array.from({ length: count }, () => []), awaited = new Array(count).fill(0), rank = new Array(count).fill(0);
  for (const [from, to] of edges) { outs[from].push(to); awaited[to] += 1; }
  const isSource = awaited.map((n) => n === 0), ready = [...isSource.keys()].filter((n) => isSource[n]);
  for (let n; (n = ready.shift()) != null;) {
    for (const to of outs[n]) {
      rank[to] = Math.max(rank[to], rank[n] + 1);
      awaited[to] -= 1;
      if (awaited[to] === 0) ready.push(to);
    }
  }
  return rank.map((r, n) => (isSource[n] && outs[n].length ? Math.max(r, Math.min(...outs[n].map((to) => rank[to])) - 1) : r));
}

// An edge over several ranks has a place of its own in each of those between.
function withPlaces(count, edges, rank) {
  const rankOf = [...rank], ups = Array.from({ length: count }, () => []), downs = Array.from({ length: count }, () => []);
  const join = (from, to) => { downs[from].push(to); ups[to].push(from); };
  const chains = edges.map(([from, to]) => {
    const chain = [];
    let last = from;
    for (let r = rank[from] + 1; r < rank[to]; r += 1) {
      const n = rankOf.push(r) - 1;
      ups.push([]); downs.push([]);
      join(last, n);
      chain.push(last = n);
    }
    join(last, to);
    return chain;
  });
  return { ups, downs, rankOf, chains };
}

// The order within each rank, of several tries the one with the fewest crossings.
function untangled(rankOf, ups, downs) {
  let layers = Array.from({ length: Math.max(...rankOf) + 1 }, () => []);
  rankOf.forEach((r, n) => layers[r].push(n));
  const place = [];
  const number = (layer) => layer.forEach((n, i) => { place[n] = i; });
  layers.forEach(number);
  let best = layers.map((layer) => [...layer]), fewest = crossings(layers, downs, place);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const down = sweep % 2 === 0, beside = down ? ups : downs;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wish = new Map(layer.map((n) => [n, beside[n].length ? mean(beside[n].map((each) => place[each])) : place[n]]));
      layer.sort((a, b) => wish.get(a) - wish.get(b) || place[a] - place[b]);
      number(layer);
    }
    const found = crossings(layers, downs, place);
    if (found < fewest) [fewest, best] = [found, layers.map((layer) => [...layer])];
  }
  return best;
}

function crossings(layers, downs, place) {
  let found = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((n) => downs[n].map((to) => place[to]).sort((a, b) => a - b));
    for (let i = 0; i < ends.length; i += 1) for (let j = 0; j < i; j += 1) if (ends[j] > ends[i]) found += 1;
  }
  return found;
}

// Each as near to its neighbours' middle as those beside it allow.
function straightened(layers, ups, downs, size, between) {
  const v = [], gap = (a, b) => (size(a) + size(b)) / 2 + between;
  for (const layer of layers) layer.forEach((n, i) => { v[n] = i === 0 ? 0 : v[layer[i - 1]] + gap(layer[i - 1], n); });
  for (let round = 0; round < STRAIGHTENINGS; round += 1) {
    const down = round % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wish = layer.map((n) => {
        const beside = down ? ups[n] : downs[n];
        return beside.length ? mean(beside.map((each) => v[each])) : v[n];
      });
      settle(layer, wish, v, gap);
    }
  }
  return v;
}

// The places nearest to the wishes, by least squares, in the given order and at their distances: neighbours that would
// come too close are moved as one block.
function settle(layer, wish, v, gap) {
  const blocks = [];
  let offset = 0;
  layer.forEach((n, i) => {
    if (i) offset += gap(layer[i - 1], n);
    let block = { sum: wish[i] - offset, many: 1, from: i };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).many > block.sum / block.many) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, many: before.many + block.many, from: before.from };
    }
    blocks.push(block);
  });
  offset = 0;
  let b = 0;
  layer.forEach((n, i) => {
    if (i) offset += gap(layer[i - 1], n);
    if (b + 1 < blocks.length && blocks[b + 1].from === i) b += 1;
    v[n] = blocks[b].sum / blocks[b].many + offset;
  });
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
