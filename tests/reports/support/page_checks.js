'use strict';
// Properties of a report page, checked in the browser. Each function returns a list of what is wrong.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const box = (element) => element.getBoundingClientRect();
  const named = (element) => element.tagName + '.' + element.getAttribute('class') + ' "' + element.textContent.trim().slice(0, 40) + '"';
  const clips = (element) => getComputedStyle(element).overflowX !== 'visible';
  const isInScroller = (element) => {
    for (let parent = element.parentElement; parent !== null; parent = parent.parentElement) if (clips(parent)) return true;
    return false;
  };
  const isShown = (element) => element.checkVisibility() && box(element).width > 0;
  const most = (scroller) => scroller.scrollWidth - scroller.clientWidth;
  const scrollers = () => all('.scroll').filter((one) => isShown(one) && clips(one));
  const scrollAll = (part) => {
    for (const one of scrollers()) one.scrollTo({ left: Math.round(part * most(one)), behavior: 'instant' });
    return frames();
  };
  const isSeen = (scroller, edge) => Number(getComputedStyle(scroller, edge).opacity) > 0.9;

  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const opacityOf = (element) => (element === document.body ? 1 : Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement));

  // Lay out the whole page now: pictures lack skipped sections, and axe-core is slow if it measures in them.
  for (const section of all('section')) section.style.contentVisibility = 'visible';

  window.check = {
    // The window shows the full width of everything that is not in a scroller.
    outside: () => all('body *')
      .filter((one) => isShown(one) && !one.closest('.sr, .skip, #tip'))
      .filter((one) => (box(one).right > innerWidth + 0.5 || box(one).left < -0.5) && !isInScroller(one))
      .map(named),
    // Nothing is cut in an element that has no hints.
    cutWithoutHint: () => all('body *')
      .filter((one) => isShown(one) && clips(one) && !one.matches('.scroll, .sr, input'))
      .filter((one) => one.scrollWidth > one.clientWidth + 1)
      .map(named),
    // A hint is at an edge if and only if the edge cuts something.
    hints: async () => {
      const wrong = [];
      for (const part of [0, 0.5, 1]) {
        await scrollAll(part);
        for (const one of scrollers()) {
          const cut = [one.scrollLeft > 0, one.scrollLeft < most(one)];
          const seen = [isSeen(one, '::before'), isSeen(one, '::after')];
          if (String(cut) !== String(seen)) wrong.push(named(one) + ' at ' + part + ': cut ' + cut + ', hints ' + seen);
        }
      }
      await scrollAll(0);
      return wrong;
    },
    // Model and arm stay at the left edge of the verdict tables.
    sticky: async () => {
      await scrollAll(1);
      const wrong = all('.verd tbody th').filter((one) => {
        const table = box(one.closest('.scroll'));
        const before = one.matches('.m') ? 0 : box(one.closest('tbody').querySelector('.m')).width;
        return Math.abs(box(one).left - table.left - before) > 1;
      });
      await scrollAll(0);
      return wrong.map(named);
    },
    // At the end of the page the navigation is at the top, low, and all its buttons can be reached.
    navigation: async () => {
      scrollTo({ top: document.body.scrollHeight, behavior: 'instant' });
      await frames();
      const bar = box(document.querySelector('nav'));
      const wrong = [];
      if (Math.abs(bar.top) > 1 || bar.height > innerHeight / 3) wrong.push('the navigation is at ' + bar.top + ', ' + bar.height + ' high');
      for (const button of all('nav a, nav button').filter(isShown)) {
        button.scrollIntoView({ behavior: 'instant', block: 'nearest', inline: 'nearest' });
        if (box(button).left < 0 || box(button).right > innerWidth || box(button).bottom > bar.bottom) wrong.push(named(button));
      }
      scrollTo({ top: 0, behavior: 'instant' });
      await scrollAll(0);
      return wrong;
    },
    // Fingers need 24 pixels.
    smallTargets: () => all('a, button, summary, input')
      .filter((one) => isShown(one) && !one.matches('.skip') && Math.min(box(one).width, box(one).height) < 23.9)
      .map((one) => named(one) + ' ' + box(one).width + ' × ' + box(one).height),
    // The verdicts of a row have the same top and height.
    unevenVerdicts: () => all('.verd tbody tr').filter((row) => {
      const cells = [...row.querySelectorAll('.v')].map(box);
      return cells.some((one) => Math.abs(one.top - cells[0].top) > 0.6 || Math.abs(one.height - cells[0].height) > 0.6);
    }).map(named),
    // axe-core does not compute the contrast of text in SVG.
    faintDrawings: () => {
      const paper = channels(getComputedStyle(document.body).backgroundColor);
      return all('main svg text').filter((one) => one.textContent.trim() !== '' && isShown(one)).filter((one) => {
        const opacity = opacityOf(one);
        const ink = channels(getComputedStyle(one).fill).map((value, i) => value * opacity + paper[i] * (1 - opacity));
        const [light, dark] = [luminance(ink), luminance(paper)].sort((a, b) => b - a);
        return (light + 0.05) / (dark + 0.05) < 4.5;
      }).map(named);
    },
    axe: async () => (await axe.run(document, { resultTypes: ['violations'], selectors: false })).violations
      .map((one) => one.id + ', ' + one.nodes.length + ' times: ' + one.nodes[0].html.slice(0, 160)),
  };
})();
