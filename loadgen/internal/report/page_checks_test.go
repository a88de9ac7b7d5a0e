package report

// contrast finds text whose contrast with its background is under 4.5:1 (WCAG AA),
// also through translucent backgrounds. For text in charts, which is on bands, it takes
// the darkest band.
const contrast = `(() => {
  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith('color(') ? [m[0]*255, m[1]*255, m[2]*255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const lum = c => { const f = v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }; return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
  const ground = e => { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1 || !e.parentElement) return c[3] ? c : [255, 255, 255, 1]; return over(c, ground(e.parentElement)); };
  const bad = new Set(); let n = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || ['SCRIPT', 'STYLE', 'DESC', 'desc'].includes(e.tagName) || !e.checkVisibility()) continue;
    n++;
    const g = ground(e), t = over(parse(getComputedStyle(e).color), g), a = lum(t), b = lum(g);
    const r = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (r < 4.5) bad.add(e.tagName + '.' + e.className + ' ' + r.toFixed(2) + ': ' + walk.currentNode.data.trim().slice(0, 30));
  }
  return n < 100 ? ['only ' + n + ' texts found'] : [...bad];
})()`

// invisible finds plots without a line on their canvas, or in their picture without
// script or on paper.
const invisible = `[...document.querySelectorAll('.plot')].filter(p => {
  const canvas = p.querySelector('canvas'), {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let drawn = 0;
  for (let i = 3; i < data.length; i += 4) drawn += data[i] > 128;
  return drawn < 50 || ![...p.querySelectorAll('path.l')].some(l => l.getAttribute('d'));
}).map(p => p.getAttribute('aria-label'))`

// gaps finds bars of a breakdown whose pieces do not fill them, are invisible
// or have no description.
const gaps = `[...document.querySelectorAll('.stack')].filter(s => {
  const whole = s.getBoundingClientRect(), pieces = [...s.querySelectorAll('rect')];
  const sum = pieces.reduce((w, p) => w + p.getBoundingClientRect().width, 0);
  return !pieces.length || whole.height < 10 || Math.abs(sum - whole.width) > 2 || pieces.some(p => !/: .+, .+% of the mean/.test(p.textContent) || getComputedStyle(p).fill === 'none');
}).map(s => s.getAttribute('aria-label'))`

// unfolded opens everything that is folded, and finds panels of the dashboards with
// neither a picture nor words.
const unfolded = `(() => {
  document.querySelectorAll('details').forEach(d => d.open = true);
  const drawn = p => [...p.querySelectorAll('svg path')].some(l => { const b = l.getBoundingClientRect(); return b.width + b.height >= 1; });
  return [...document.querySelectorAll('.pn-panel')].filter(p => !p.querySelector('.empty, table, .pn-stat') && !drawn(p)).map(p => p.querySelector('h4').textContent);
})()`

const overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`
