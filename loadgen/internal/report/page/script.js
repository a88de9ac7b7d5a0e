// The charts that can be zoomed, and the values at the cursor in all of them. Without
// this the page shows the same lines as SVG.
'use strict';
const drawCharts = () => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const root = document.documentElement;
  const clock = document.getElementById('clock');
  const idle = clock.textContent;
  const end = (data.n - 1) * data.step;
  let shown = [0, end]; // seconds of the run
  let active = null; // the plot that is pointed at or has the focus
  let plots = [];

  // Three significant digits, as the tables have.
  const number = v => {
    if (v === 0) return '0';
    const decimals = Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v)))));
    const [whole, part] = v.toFixed(decimals).split('.');
    const tail = (part || '').replace(/0+$/, '');
    return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (tail && '.' + tail);
  };
  const scaled = (v, units) => {
    let i = 0;
    for (; Math.abs(v) >= 999.5 && i < units.length - 1; i++) v /= 1000;
    return number(v) + units[i];
  };
  const pad = n => String(n).padStart(2, '0');
  const seconds = v => {
    if (v === 0) return '0 s';
    if (v < 999.5e-6) return number(v * 1e6) + ' µs';
    if (v < 999.5e-3) return number(v * 1e3) + ' ms';
    if (v < 59.95) return number(v) + ' s';
    const t = Math.round(v);
    if (t % 3600 === 0) return `${t / 3600}h`;
    if (t % 60 === 0 && t < 3600) return `${t / 60}m`;
    return t < 3600 ? `${Math.floor(t / 60)}m ${pad(t % 60)}s` : `${Math.floor(t / 3600)}h ${pad(Math.floor(t / 60) % 60)}m`;
  };
  const format = (unit, v) => {
    if (v === null || v === undefined) return '–';
    switch (unit) {
      case 'seconds': return seconds(v);
      case 'bytes': return scaled(v, [' B', ' kB', ' MB', ' GB', ' TB']);
      case 'ratio': return number(v * 100) + '%';
      case 'per second': return number(v) + '/s';
      case 'per hour': return number(v) + '/h';
      default: return number(v);
    }
  };
  const label = (unit, v) => (unit === 'count' || unit === 'per second') && v >= 10000 ? scaled(v, ['', 'k', 'M', 'G', 'T']) : format(unit, v);
  const elapsed = s => {
    const t = Math.round(s), m = Math.floor(t / 60);
    return t < 3600 ? `${m}:${pad(t % 60)}` : `${Math.floor(t / 3600)}:${pad(m % 60)}:${pad(t % 60)}`;
  };
  const phaseAt = s => (data.phases.find(p => s >= p.start && s <= p.end) || {}).name;
  const part = (tag, name, text) => {
    const e = document.createElement(tag);
    if (name) e.className = name;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const svg = (tag, attributes) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    return e;
  };
  const colour = name => getComputedStyle(root).getPropertyValue('--' + name);

  // The next of 1, 2, 2.5 and 5 times a power of ten.
  const round = v => {
    const p = 10 ** Math.floor(Math.log10(v));
    return p * [1, 2, 2.5, 5, 10].find(m => m * p >= v * (1 - 1e-9));
  };
  // 1, 2, 5, 10, 20 ... by number: 0 is 1.
  const decade = i => [1, 2, 5][((i % 3) + 3) % 3] * 10 ** Math.floor(i / 3);
  const decadeBelow = v => {
    let i = 3 * Math.floor(Math.log10(v));
    while (decade(i + 1) <= v * (1 + 1e-9)) i++;
    return i;
  };
  // The vertical axis of values from low to high: its ends and its round ticks.
  const scaleOf = (chart, low, high) => {
    const reach = chart.log ? 20 : 2.5, level = chart.level;
    if (level > high && level <= high * reach) high = level * 1.05;
    if (chart.log && level > 0 && level < low && level * reach >= low) low = level;
    if (chart.log && high <= 0) return { low: 1, high: 10, ticks: [] };
    const ticks = [];
    if (chart.log) {
      const first = decadeBelow(low);
      let last = first + 2;
      while (decade(last) < high * (1 - 1e-9)) last++;
      for (let i = first; i <= last; i++) if (last - first <= 5 || i % 3 === 0) ticks.push(decade(i));
      const every = 2 ** Math.max(0, Math.ceil(Math.log2(ticks.length / 5)));
      return { low: decade(first), high: decade(last), ticks: ticks.filter((_, i) => i % every === 0) };
    }
    let step = round((high || 1) / 4);
    if (chart.unit === 'count') step = Math.ceil(step);
    high = Math.ceil((high || 1) / step - 1e-9) * step;
    for (let v = 0; v <= high + step / 2; v += step) ticks.push(v);
    return { low: 0, high, ticks };
  };

  // What is drawn as SVG or HTML follows: tracks, the dashboards' panels, the ruler.
  const dashboards = document.querySelector('.pn');
  const drawings = [...document.querySelectorAll('.area > svg, .track svg, .pn-plot svg, .pn-states svg')].map(element => {
    const [, , wide, high] = element.getAttribute('viewBox').split(' ').map(Number);
    const { from, to } = dashboards && dashboards.contains(element) ? dashboards.dataset : { from: 0, to: end };
    const span = to - from, x = s => (s - from) / span * wide;
    const line = svg('line', { class: 'at', y1: 0, y2: high, visibility: 'hidden' });
    element.append(line);
    element.dataset.wide = wide;
    return {
      element, wide, high, x, line,
      seconds: e => { const box = element.getBoundingClientRect(); return shown[0] + (e.clientX - box.left) / box.width * (shown[1] - shown[0]); },
    };
  });
  const placed = [...document.querySelectorAll('.ruler [style], .track [style]')].map(element => ({
    element, left: parseFloat(element.style.left), width: parseFloat(element.style.width) || 0, band: element.classList.contains('band'),
  }));
  const cursor = document.querySelector('.ruler .cursor');
  const times = document.querySelector('.ruler .times'), timesIdle = [...times.children];
  const share = s => (s - shown[0]) / (shown[1] - shown[0]);
  const whole = () => shown[0] <= 0 && shown[1] >= end;
  const reset = part('button', '', 'Show the whole run');
  reset.type = 'button';
  reset.hidden = true;
  reset.addEventListener('click', () => zoom(0, end));
  clock.after(reset);

  const follow = () => {
    const [from, to] = shown;
    root.classList.toggle('zoomed', !whole());
    reset.hidden = whole();
    for (const d of drawings) d.element.setAttribute('viewBox', `${d.x(from)} 0 ${d.x(to) - d.x(from)} ${d.high}`);
    for (const { element, left, width, band } of placed) {
      let a = share(left / 100 * end), b = share((left + width) / 100 * end);
      element.hidden = band ? b <= 0 || a >= 1 : a < 0 || a > 1;
      if (band) [a, b] = [Math.max(a, 0), Math.min(b, 1)];
      element.style.left = a * 100 + '%';
      if (band) element.style.width = (b - a) * 100 + '%';
    }
    const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].find(s => (to - from) / s <= 12) || 86400;
    const ticks = [];
    for (let t = Math.ceil(from / step) * step; share(t) <= .97; t += step) {
      ticks.push(part('span', '', elapsed(t)));
      ticks.at(-1).style.left = share(t) * 100 + '%';
    }
    times.replaceChildren(...(whole() ? timesIdle : ticks));
    document.querySelectorAll('.pn-x').forEach(x => [...x.children].forEach((c, i) => { c.textContent = elapsed(from + (to - from) * i / 4); }));
  };
  const zoom = (from, to) => {
    const least = 4 * data.step, middle = (from + to) / 2;
    if (to - from < least) [from, to] = [middle - least / 2, middle + least / 2];
    for (const chart of plots) chart.setScale('x', { min: Math.max(0, from), max: Math.min(end, to) });
  };

  // The moment under the cursor, read in all charts.
  const showMoment = at => {
    const s = at * data.step, phase = phaseAt(s);
    clock.textContent = elapsed(s) + (phase ? ', ' + phase : '') + (data.start ? ' · ' + new Date((data.start + s) * 1000).toISOString().slice(11, 19) + ' UTC' : '');
    cursor.hidden = false;
    cursor.style.left = share(s) * 100 + '%';
    for (const { line, x } of drawings) {
      line.setAttribute('x1', x(s));
      line.setAttribute('x2', x(s));
      line.setAttribute('visibility', 'visible');
    }
  };
  const hideMoment = () => {
    clock.textContent = idle;
    cursor.hidden = true;
    for (const { line } of drawings) line.setAttribute('visibility', 'hidden');
  };
  const point = s => {
    const [chart] = plots;
    chart.setCursor({ left: chart.valToPos(Math.min(end, Math.max(0, s)), 'x'), top: 1 }, true, true);
  };
  const unpoint = () => plots[0].setCursor({ left: -10, top: -10 }, true, true);

  function newPlot(element, spec) {
    const area = element.querySelector('.area'), tip = element.querySelector('.tip'), guide = element.querySelector('.guidetext');
    const figures = [...element.parentElement.querySelectorAll('.legend .val')];
    const dashes = { 4: [6, 3], 5: [2, 3.5], 6: [9, 3, 2, 3], 7: [4, 4] };
    let scale;
    const size = () => ({ width: element.clientWidth, height: element.clientHeight });
    const showTip = (at, place) => {
      const s = at * data.step, phase = phaseAt(s);
      tip.replaceChildren(part('b', '', elapsed(s) + (phase ? ', ' + phase : '')));
      const order = spec.series.filter(l => l.values[at] !== null).sort((a, b) => b.values[at] - a.values[at]);
      for (const l of order) {
        const row = part('div'), swatch = svg('svg', { class: 'swatch', viewBox: '0 0 22 8' });
        swatch.append(svg('path', { class: 'l s' + l.colour, d: 'M1 4H21' }));
        row.append(swatch, part('span', 'name', l.name), part('span', 'val', format(spec.unit, l.values[at])));
        tip.append(row);
      }
      if (!order.length) tip.append(part('div', '', 'nothing was measured'));
      tip.style.left = place < .5 ? `calc(${place * 100}% + 12px)` : 'auto';
      tip.style.right = place < .5 ? 'auto' : `calc(${(1 - place) * 100}% + 12px)`;
    };
    const read = u => {
      const at = u.cursor.idx, none = at === null || at === undefined || u.cursor.left < 0;
      figures.forEach((f, i) => { f.textContent = none ? f.dataset.figure : format(spec.unit, spec.series[i].values[at]); });
      tip.hidden = none || active !== element;
      if (!tip.hidden) showTip(at, share(at * data.step));
      if (u === plots[0]) none ? hideMoment() : showMoment(at);
    };
    const drawLevel = u => {
      if (!guide) return;
      const y = u.valToPos(spec.level, 'y', true), { left, width, top, height } = u.bbox;
      guide.hidden = y < top || y > top + height;
      guide.style.top = u.valToPos(spec.level, 'y') + 'px';
      if (guide.hidden) return;
      u.ctx.save();
      u.ctx.strokeStyle = colour('ink');
      u.ctx.lineWidth = devicePixelRatio;
      u.ctx.setLineDash([7 * devicePixelRatio, 4 * devicePixelRatio]);
      u.ctx.beginPath();
      u.ctx.moveTo(left, y);
      u.ctx.lineTo(left + width, y);
      u.ctx.stroke();
      u.ctx.restore();
    };
    const chart = new uPlot({
      ...size(), legend: { show: false }, padding: [area.offsetTop, 0, area.offsetTop, 0],
      cursor: { y: false, sync: { key: 'run' }, drag: { x: true, y: false, dist: 5 }, points: { size: 7, width: 0 } },
      scales: {
        x: { time: false },
        y: { distr: spec.log ? 3 : 1, clamp: (u, v, low) => low, range: (u, low, high) => {
          scale = scaleOf(spec, low ?? Infinity, Math.max(high ?? 0, 0));
          return [scale.low, scale.high];
        } },
      },
      axes: [{ show: false }, {
        size: () => area.offsetLeft, gap: 6, font: '11px ' + getComputedStyle(root).fontFamily, stroke: () => colour('dim'),
        splits: () => scale.ticks, filter: (u, ticks) => ticks, values: (u, ticks) => ticks.map(v => label(spec.unit, v)),
        ticks: { show: false }, grid: { width: 1, stroke: () => colour('grid'), filter: (u, ticks) => ticks },
      }],
      series: [{}, ...spec.series.map(l => ({ stroke: () => colour('s' + l.colour), width: 1.7, dash: dashes[l.colour], points: { size: 4, width: 0, fill: () => colour('s' + l.colour) } }))],
      hooks: {
        setCursor: [read], draw: [drawLevel],
        setScale: [(u, key) => {
          if (key !== 'x' || u !== plots[0]) return;
          shown = [u.scales.x.min, u.scales.x.max];
          follow();
        }],
      },
    }, [Array.from({ length: data.n }, (_, i) => i * data.step), ...spec.series.map(l => l.values)], element);
    new ResizeObserver(() => chart.setSize(size())).observe(element);
    element.addEventListener('pointerenter', () => { active = element; });
    chart.over.addEventListener('pointermove', e => { if (e.pointerType === 'touch') chart.setCursor({ left: e.offsetX, top: e.offsetY }, true, true); });
    element.addEventListener('focus', () => { active = element; });
    element.addEventListener('blur', unpoint);
    element.addEventListener('keydown', e => {
      const at = chart.cursor.left >= 0 ? chart.cursor.idx : null, last = data.n - 1;
      const jump = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[e.key];
      const from = at ?? (jump < 0 ? Math.floor(shown[1] / data.step) + 1 : Math.ceil(shown[0] / data.step) - 1);
      const go = i => { active = element; point(Math.min(last, Math.max(0, i)) * data.step); };
      const by = f => { const m = at === null ? (shown[0] + shown[1]) / 2 : at * data.step; zoom(m - (m - shown[0]) * f, m + (shown[1] - m) * f); };
      if (jump) go(from + jump);
      else if (e.key === 'Home') go(Math.ceil(shown[0] / data.step));
      else if (e.key === 'End') go(Math.floor(shown[1] / data.step));
      else if (e.key === '+' || e.key === '=') by(.5);
      else if (e.key === '-') by(2);
      else if (e.key === '0') zoom(0, end);
      else if (e.key === 'Escape') unpoint();
      else return;
      e.preventDefault();
    });
    return chart;
  }

  plots = [...document.querySelectorAll('.plot')].map((element, k) => newPlot(element, data.charts[k]));
  // What the page of a run that goes on needs, to draw it again: the stretch that is shown, in Unix seconds; null: all.
  const ended = new AbortController();
  const drawn = {
    shown: () => whole() || !plots.length ? null : shown.map(s => data.start + s),
    show: ([from, to]) => { if (plots.length) zoom(from - data.start, to - data.start); },
    end: () => { ended.abort(); plots.forEach(chart => chart.destroy()); },
  };
  if (!plots.length) return drawn;
  root.classList.add('live');
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plots.forEach(chart => chart.redraw(false)), { signal: ended.signal });
  for (const d of drawings) {
    d.element.addEventListener('pointermove', e => { active = null; point(d.seconds(e)); });
    d.element.addEventListener('pointerleave', unpoint);
  }
  document.querySelectorAll('.ruler .band').forEach((band, i) => {
    const { start, end: stop } = data.phases[i], show = () => zoom(start, stop);
    band.tabIndex = 0;
    band.setAttribute('role', 'button');
    band.setAttribute('aria-label', 'Zoom to ' + band.title);
    band.addEventListener('click', show);
    band.addEventListener('keydown', e => { if (e.key === 'Enter' || e.key === ' ') { show(); e.preventDefault(); } });
  });
  return drawn;
};
let charts = drawCharts();
