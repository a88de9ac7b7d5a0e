// The page of a run that goes on: its state as it changes, the page anew when there is a newer one, and the buttons.
(() => {
  const at = id => document.getElementById(id);
  let version = null, lost = false, pressed = false, state = {};

  // Readers drag and press: nothing is replaced under their hands.
  document.addEventListener('pointerdown', () => { pressed = true; });
  for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => { pressed = false; });

  const show = () => {
    at('now').textContent = state.line;
    at('pause').textContent = state.paused ? 'Resume load' : 'Pause load';
    at('pause').disabled = at('end-phase').disabled = !state.phase;
    at('end-phase').textContent = state.phase ? 'End phase ' + state.phase : 'End phase';
    document.querySelector('.verdict .word').textContent = state.word;
    at('steps').replaceChildren(...state.steps.map(line => {
      const item = document.createElement('li');
      item.textContent = line;
      return item;
    }));
  };
  const say = text => { at('said').textContent = text; };

  // The buttons stay: they keep the focus.
  const replace = text => {
    const next = new DOMParser().parseFromString(text, 'text/html'), shown = charts.shown();
    const main = document.querySelector('main'), steer = main.querySelector('.steer');
    const fresh = [...next.querySelector('main').childNodes], place = fresh.findIndex(n => n.className === 'steer');
    charts.end();
    document.title = next.title;
    for (const old of [...main.childNodes]) if (old !== steer) old.remove();
    steer.before(...fresh.slice(0, place));
    steer.after(...fresh.slice(place + 1));
    at('data').textContent = next.getElementById('data').textContent;
    charts = drawCharts();
    if (shown) charts.show(shown);
    show();
  };
  let fetching = false;
  const renew = async () => {
    if (fetching || pressed || state.version === version) return;
    fetching = true;
    try {
      const page = await fetch('page', { cache: 'no-store' });
      if (page.ok && !pressed) {
        version = Number(page.headers.get('Page-Version'));
        replace(await page.text());
      }
    } catch { /* the next state tries again */ }
    fetching = false;
  };
  const events = new EventSource('events');
  events.onmessage = message => {
    state = JSON.parse(message.data);
    if (state.final) {
      events.close();
      location.reload();
      return;
    }
    if (lost) say('');
    lost = false;
    show();
    renew();
  };
  events.onerror = () => {
    lost = true;
    at('pause').disabled = at('end-phase').disabled = true;
    say('loadgen does not answer. The run has probably ended, or loadgen was stopped.');
  };
  const command = async path => {
    try {
      const answer = await fetch(path, { method: 'POST' });
      say(answer.ok ? '' : (await answer.text()).trim());
    } catch {
      say('loadgen does not answer.');
    }
  };
  at('pause').addEventListener('click', () => command(state.paused ? 'resume' : 'pause'));
  at('end-phase').addEventListener('click', () => command('end-phase?phase=' + encodeURIComponent(state.phase)));
})();
