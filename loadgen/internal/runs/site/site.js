// The script of the pages about a folder of runs. Without it, the pages work, but do not update.
'use strict';
(() => {
  const all = (selector, of = document) => [...of.querySelectorAll(selector)];

  // The button of the list is enabled when two to six runs are selected.
  const checked = new Set();
  const count = () => {
    const act = document.querySelector('.act');
    if (!act) return;
    const n = checked.size;
    act.querySelector('button').disabled = n < 2 || n > 6;
    act.querySelector('output').textContent = n === 0 ? 'Select two to six runs.' : n > 6 ? `${n} runs are selected, but six is the maximum.` : `${n} selected`;
  };
  const boxes = () => {
    for (const box of all('input[name=run]')) {
      box.checked = checked.has(box.value);
      box.addEventListener('change', () => {
        checked[box.checked ? 'add' : 'delete'](box.value);
        count();
      });
    }
    count();
  };
  for (const box of all('input[name=run]:checked')) checked.add(box.value); // after the browser's button Back
  boxes();

  const form = document.querySelector('.filter');
  if (form) for (const menu of all('select', form)) menu.addEventListener('change', () => form.requestSubmit());

  // A list in a file has no server: the script filters the rows.
  const rows = all('tr[data-search]');
  if (form && rows.length) {
    form.addEventListener('submit', event => {
      event.preventDefault();
      const want = new FormData(form), words = want.get('text').toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of rows) {
        const facets = JSON.parse(row.dataset.facets);
        row.hidden = !words.every(word => row.dataset.search.includes(word)) ||
          [...want].some(([name, value]) => name !== 'text' && value && !facets[name].split('\n').includes(value));
        shown += !row.hidden;
      }
      document.querySelector('.said p').textContent = `${shown} of ${rows.length} match`;
    });
    form.elements.text.addEventListener('input', () => form.requestSubmit());
  }

  // The list updates itself. It keeps the focus, the selection and unfinished input.
  const list = document.getElementById('list');
  if (!list || rows.length) return;
  let tag = null;
  const renew = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { headers: tag ? { 'If-None-Match': tag } : {}, cache: 'no-store' });
      if (answer.status !== 200) return;
      tag = answer.headers.get('ETag');
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const focused = document.activeElement && document.activeElement.name === 'run' ? document.activeElement.value : null;
      for (const part of ['.said p', '#runs tbody', '#changes tbody']) {
        const old = document.querySelector(part), fresh = next.querySelector(part);
        if (Boolean(old) !== Boolean(fresh)) {
          if (!all('#runs').length && !checked.size) location.reload();
        } else if (old && old.innerHTML !== fresh.innerHTML) {
          old.innerHTML = fresh.innerHTML;
        }
      }
      boxes();
      if (focused !== null) all('input[name=run]').filter(box => box.value === focused).forEach(box => box.focus());
    } catch { /* the server may be back at the next time */ }
  };
  setInterval(renew, 3000);
})();
