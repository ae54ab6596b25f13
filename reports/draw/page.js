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
  const groups = all('main .chart g').map((group) => [group, group.getAttribute('class')]);
  all('.keys button').forEach((button) => button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') === 'true';
    button.setAttribute('aria-pressed', String(!on));
    groups.forEach(([group, key]) => {
      if (key === button.dataset.key) group.classList.toggle('off', on);
    });
  }));
  const hidden = () => new Set(all('.keys button[aria-pressed="false"]').map((button) => button.dataset.label));

  // Crosshair for pointer and keyboard. The values come from the figure's CSV.
  const tip = one('#tip');
  const live = one('#live');
  let cross = null;
  const hide = () => {
    tip.hidden = true;
    if (cross) cross.remove();
    cross = null;
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
    tip.hidden = false;
    const box = svg.getBoundingClientRect();
    const at = box.left + x * box.width / svg.viewBox.baseVal.width;
    const width = tip.offsetWidth;
    const left = at + 14 + width > innerWidth ? at - width - 14 : at + 14;
    tip.style.left = Math.max(6, left) + 'px';
    tip.style.top = Math.max(6, Math.min(innerHeight - tip.offsetHeight - 6, box.top + 8)) + 'px';
    if (say) live.textContent = 'Epoch ' + cells[0] + ': ' + spoken.join(', ');
  };
  all('svg[data-dx]').forEach((svg) => {
    svg.addEventListener('pointermove', (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      show(svg, Math.round((x - Number(svg.dataset.x0)) / Number(svg.dataset.dx)));
    });
    svg.addEventListener('pointerleave', hide);
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
    box.className = 'dt';
    box.tabIndex = 0;
    box.append(table);
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
