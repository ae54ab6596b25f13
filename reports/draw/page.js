'use strict';
// Optional functions: series on and off, crosshair, sorting and filtering, theme. The page is complete without them.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const element = (tag, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const root = document.documentElement;
  root.classList.add('scripted');

  const theme = one('#theme');
  const next = { auto: 'dark', dark: 'light', light: 'auto' };
  let current = 'auto';
  theme.addEventListener('click', () => {
    current = next[current];
    if (current === 'auto') root.removeAttribute('data-theme');
    else root.dataset.theme = current;
    theme.textContent = 'Theme: ' + current;
  });
  one('#print').addEventListener('click', () => print());

  // Series on and off in all figures. `data-key` of a legend button is the class of the series' groups.
  const groups = all('main figure:not(.own) .chart g').map((group) => [group, group.getAttribute('class')]);
  all('.keys button[data-key]').forEach((button) => button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') === 'true';
    button.setAttribute('aria-pressed', String(!on));
    groups.forEach(([group, key]) => {
      if (key === button.dataset.key) group.classList.toggle('off', on);
    });
  }));
  // Ranks are hidden until the first click on "Ranks".
  const ranks = one('#ranks');
  if (ranks) {
    ranks.addEventListener('click', () => {
      ranks.setAttribute('aria-pressed', String(root.classList.toggle('ranks')));
    });
  }
  // Labels of a hidden series. `data-label`: its labels in the figures, one per line.
  const hidden = () => new Set(all('.keys button[data-label]')
    .filter((button) => button.getAttribute('aria-pressed') === 'false'
      || (button.classList.contains('rk') && !root.classList.contains('ranks')))
    .flatMap((button) => button.dataset.label.split('\n')));

  // A box that is too small for its content can get the focus, so that the arrow keys scroll it.
  const nameOf = (box) => {
    const figure = box.closest('figure') ?? box;
    const section = box.closest('section') ?? box;
    return (one('caption', box) ?? one('figcaption', figure) ?? one('h2', section))?.textContent ?? 'Table';
  };
  const onResize = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    const box = target.closest('.scroll');
    if (box === null) return;
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }));
  const watch = (box) => {
    box.tabIndex = 0;  // until it is laid out
    if (!box.hasAttribute('role')) box.setAttribute('role', 'group');
    if (!box.hasAttribute('aria-label')) box.setAttribute('aria-label', nameOf(box));
    [box, ...box.children].forEach((part) => onResize.observe(part));
  };
  all('.scroll').forEach(watch);

  // Values of a figure: a crosshair for pointer and keyboard, and a tip. The values come from the figure's CSV.
  const tip = one('#tip');
  const live = one('#live');
  let cross = null;
  let tapped = false;  // a tip that the keyboard opened stays while the page scrolls to it
  const hide = () => {
    tip.hidden = true;
    if (cross) cross.remove();
    cross = null;
    tapped = false;
  };
  // Rows of a figure's CSV (RFC 4180), the head first.
  const parsed = new WeakMap();
  const rowsOf = (figure) => {
    const source = one('.csv', figure);
    if (!parsed.has(source)) {
      const rows = [[]];
      for (const [, quoted, plain, end] of source.textContent.matchAll(/(?:"((?:[^"]|"")*)"|([^,\n]*))(,|\n|$)/g)) {
        rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
        if (end === '\n') rows.push([]);
      }
      parsed.set(source, rows.filter((row) => row.length > 1));
    }
    return parsed.get(source);
  };
  const shown = (text) => (text === '' ? '–' : String(Number(Number(text).toPrecision(5))).replace('-', '−'));
  // Shows the tip beside a point of the window.
  const place = (x, y) => {
    tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tip;
    const left = x + 14 + width > innerWidth ? x - width - 14 : x + 14;
    tip.style.left = Math.max(6, Math.min(innerWidth - width - 6, left)) + 'px';
    tip.style.top = Math.max(6, Math.min(innerHeight - height - 6, y)) + 'px';
  };
  const show = (svg, wanted, say) => {
    const [names, ...rows] = rowsOf(svg.closest('figure'));
    const index = Math.max(0, Math.min(rows.length - 1, wanted));
    svg.dataset.index = index;
    const cells = rows[index];
    const x = Number(svg.dataset.x0) + Number(svg.dataset.dx) * (Number(cells[0]) - Number(svg.dataset.first));
    hide();
    cross = document.createElementNS('http://www.w3.org/2000/svg', 'line');
    for (const [name, value] of [['class', 'cross'], ['x1', x], ['x2', x], ['y1', 10], ['y2', 166]]) {
      cross.setAttribute(name, value);
    }
    svg.append(cross);
    const title = one('figcaption b', svg.closest('figure')).textContent;
    const list = element('table');
    const spoken = [];
    const off = hidden();
    for (let column = 1; column < cells.length; column += 3) {
      if (off.has(names[column])) continue;
      const row = list.insertRow();
      row.insertCell().textContent = names[column];
      row.insertCell().textContent = shown(cells[column]);
      const ends = cells[column + 1] === '' ? '' : '[' + shown(cells[column + 1]) + ', ' + shown(cells[column + 2]) + ']';
      row.insertCell().textContent = ends;
      spoken.push(names[column] + ' ' + shown(cells[column]));
    }
    tip.replaceChildren(element('strong', title + ', epoch ' + cells[0]), list);
    const box = svg.getBoundingClientRect();
    place(box.left + x * box.width / svg.viewBox.baseVal.width, box.top + 8);
    if (say) live.textContent = 'Epoch ' + cells[0] + ': ' + spoken.join(', ');
  };
  all('svg[data-dx]').forEach((svg) => {
    const showAt = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      show(svg, Math.round((x - Number(svg.dataset.x0)) / Number(svg.dataset.dx)));
    };
    svg.addEventListener('pointermove', showAt);
    svg.addEventListener('click', (event) => {  // a tap; a mouse has moved before
      showAt(event);
      tapped = true;
    });
    svg.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse') hide();  // a finger leaves at the end of each tap
    });
    svg.addEventListener('blur', hide);
    svg.addEventListener('keydown', (event) => {
      const index = svg.dataset.index === undefined ? -1 : Number(svg.dataset.index);
      const last = rowsOf(svg.closest('figure')).length - 2;
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: last }[event.key];
      if (event.key === 'Escape') hide();
      if (to === undefined) return;
      event.preventDefault();
      show(svg, to, true);
    });
  });

  // A tap on a figure without epochs shows its numbers, and a tap on a verdict shows what a mouse shows as its title.
  const fewRows = 12;
  all('figure svg.chart:not([data-dx], .bd)').forEach((svg) => svg.addEventListener('click', (event) => {
    const figure = svg.closest('figure');
    const rows = rowsOf(figure);
    hide();
    const list = element('table');
    if (rows.length <= fewRows + 1) {
      rows.forEach((cells, index) => {
        const row = list.insertRow();
        for (const cell of cells) row.append(element(index === 0 ? 'th' : 'td', Number(cell) ? shown(cell) : cell));
      });
    }
    const many = rows.length > fewRows + 1 ? ': ' + (rows.length - 1) + ' rows, see "Query and data"' : '';
    tip.replaceChildren(element('strong', one('figcaption b', figure).textContent + many), list);
    place(event.clientX, event.clientY + 14);
    tapped = true;
  }));
  all('.v[title]').forEach((cell) => cell.addEventListener('click', (event) => {
    hide();
    tip.replaceChildren(cell.title);
    place(event.clientX, event.clientY + 14);
    tapped = true;
  }));
  document.addEventListener('pointerdown', (event) => {
    if (!event.target.closest('svg[data-dx]')) hide();
  });
  document.addEventListener('scroll', () => {
    if (tapped) hide();
  }, { capture: true, passive: true });

  // Data: when opened, a table replaces the CSV text, and a button saves the CSV file.
  const asTable = (source) => {
    const [names, ...rows] = rowsOf(source.closest('figure'));
    const table = element('table');
    const head = table.createTHead().insertRow();
    for (const name of names) head.append(element('th', name));
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const cell of row) line.insertCell().textContent = cell;
    }
    const box = element('div');
    box.className = 'dt scroll';
    box.append(table);
    watch(box);
    return box;
  };
  all('figure details').forEach((details) => details.addEventListener('toggle', () => {
    const source = one('.csv', details);
    if (!details.open || source.hidden) return;
    const save = element('button', 'Save ' + source.dataset.file);
    save.type = 'button';
    save.className = 'tool';
    save.addEventListener('click', () => {
      const link = element('a');
      link.href = URL.createObjectURL(new Blob([source.textContent], { type: 'text/csv' }));
      link.download = source.dataset.file;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    source.after(asTable(source), save);
    source.hidden = true;
  }));

  // Runs: sort by a column, filter by any text.
  const runs = one('#runs');
  all('th button', runs).forEach((button, column) => button.addEventListener('click', () => {
    const head = button.parentNode;
    const up = head.getAttribute('aria-sort') !== 'ascending';
    all('th', runs).forEach((other) => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const value = (row) => {
      const cell = row.cells[column];
      if (!head.classList.contains('n')) return cell.textContent;
      return cell.dataset.value === '' ? -Infinity : Number(cell.dataset.value);
    };
    const order = (a, b) => (typeof a === 'number' ? a - b : a.localeCompare(b, 'en', { numeric: true }));
    const sorted = [...runs.tBodies[0].rows].sort((a, b) => order(value(a), value(b)) * (up ? 1 : -1));
    runs.tBodies[0].append(...sorted);
  }));
  one('#filter').addEventListener('input', (event) => {
    const wanted = event.target.value.toLowerCase();
    let count = 0;
    for (const row of runs.tBodies[0].rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      count += row.hidden ? 0 : 1;
    }
    one('#filtered').textContent = count + ' runs';
  });
})();
