// Values under the pointer: one moment, read in all charts. The page is whole
// without this.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const plots = [...document.querySelectorAll('.plot')];
  const cursors = document.querySelectorAll('.cursor');
  const clock = document.getElementById('clock');
  const idle = clock.textContent;
  const last = data.n - 1;
  let at = -1;

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

  const swatch = colour => {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('class', 'swatch');
    svg.setAttribute('viewBox', '0 0 22 8');
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('class', 'l s' + colour);
    path.setAttribute('d', 'M1 4H21');
    svg.append(path);
    return svg;
  };

  const show = (i, own) => {
    at = Math.min(last, Math.max(0, i));
    const share = last > 0 ? at / last : 0, s = at * data.step, phase = phaseAt(s);
    const moment = elapsed(s) + (phase ? ', ' + phase : '');
    clock.textContent = moment + ' · ' + new Date((data.start + s) * 1000).toISOString().slice(11, 19) + ' UTC';
    for (const c of cursors) { c.hidden = false; c.style.left = share * 100 + '%'; }
    plots.forEach((plot, k) => {
      const chart = data.charts[k];
      const values = plot.parentElement.querySelectorAll('.legend .val');
      chart.series.forEach((l, j) => { values[j].textContent = format(chart.unit, l.values[at]); });
      const tip = plot.querySelector('.tip');
      tip.hidden = plot !== own;
      if (plot !== own) return;
      tip.replaceChildren(part('b', '', moment));
      const order = chart.series.filter(l => l.values[at] !== null).sort((a, b) => b.values[at] - a.values[at]);
      for (const l of order) {
        const row = part('div');
        row.append(swatch(l.colour), part('span', 'name', l.name), part('span', 'val', format(chart.unit, l.values[at])));
        tip.append(row);
      }
      if (!order.length) tip.append(part('div', '', 'nothing was measured'));
      tip.style.left = share < .5 ? `calc(${share * 100}% + 12px)` : 'auto';
      tip.style.right = share < .5 ? 'auto' : `calc(${(1 - share) * 100}% + 12px)`;
    });
  };
  const hide = () => {
    at = -1;
    clock.textContent = idle;
    for (const c of cursors) c.hidden = true;
    for (const t of document.querySelectorAll('.tip')) t.hidden = true;
    for (const v of document.querySelectorAll('.legend .val')) v.textContent = v.dataset.figure;
  };

  for (const plot of plots) {
    const point = e => {
      const box = plot.querySelector('.area').getBoundingClientRect();
      show(Math.round((e.clientX - box.left) / box.width * last), plot);
    };
    plot.addEventListener('pointermove', point);
    plot.addEventListener('pointerdown', point);
    plot.addEventListener('pointerleave', e => { if (e.pointerType === 'mouse') hide(); });
    plot.addEventListener('blur', hide);
    plot.addEventListener('keydown', e => {
      const jump = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[e.key];
      if (jump) show((at < 0 ? (jump < 0 ? last + 1 : -1) : at) + jump, plot);
      else if (e.key === 'Home') show(0, plot);
      else if (e.key === 'End') show(last, plot);
      else if (e.key === 'Escape') hide();
      else return;
      e.preventDefault();
    });
  }
})();
