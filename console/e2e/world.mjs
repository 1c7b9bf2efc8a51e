// What journeys and screenshots share: a browser, a login, and what a page must never have.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The given settings; a missing one is a mistake of who calls. */
export function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

export async function launch() {
  return chromium.launch({
    executablePath: process.env.TUTTI_CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
}

/** A window; what its console says is kept in `said`. Whoever is logged in there is it with these cookies. */
export async function open(browser, { theme = 'light', width = 1280, height = 800, cookies = [] } = {}) {
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    ignoreHTTPSErrors: true,
  });
  context.setDefaultTimeout(60_000); // a machine may be busy with other tests
  await context.addCookies(cookies);
  const page = await context.newPage();
  const said = [];
  page.on('console', (m) => said.push(`${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => said.push(`error: ${e.message}`));
  return { context, page, said };
}

/** A further window of somebody. It is no second tab: a browser draws one that is behind another once in a second. */
export async function further(context) {
  return open(context.browser(), { cookies: await context.cookies() });
}

/**
 * What axe finds that is serious. It is run beside the page's own scripts: the page's policy lets no other script in. Only what it finds is written
 * down and sent from the page: of what is well there is a hundred times as much.
 */
export async function findings(page) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const result = await globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
      resultTypes: ['violations'],
    });
    return { violations: result.violations, looked: result.passes.length };
  });
  if (found.looked === 0) throw new Error('axe looked at nothing');
  return found.violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map(
      (v) =>
        `${v.id}: ${v.help}: ${v.nodes
          .map((n) => `${n.target} ${n.failureSummary}`)
          .slice(0, 3)
          .join(' | ')}`,
    );
}

/** What is wider than the window, or cut off, a moment after the window changed: empty when the page fits. */
export async function overflows(page) {
  let found = '';
  for (let tries = 0; tries < 20; tries++) {
    found = await page.evaluate(overflowing);
    if (!found) break;
    await page.waitForTimeout(100);
  }
  return found;
}

function overflowing() {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const lists = [...document.querySelectorAll('.grid')]
    .map((list) => list.scrollWidth - list.clientWidth)
    .filter((more) => more > 1);
  if (wide > 1) return `the page is ${wide} pixels wider than the window`;
  return lists.length > 0 ? `columns of a list are cut off by ${lists.join(', ')} pixels` : '';
}

/** Waits until a page has what it asked for. */
export async function settled(page) {
  await page.waitForSelector('h1');
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
}

/** Somebody at a keyboard without a mouse. What had the focus on the way, and could not be seen to have it, is kept in `unseen`. */
export function keysOf(page) {
  const unseen = [];
  const to = async (what) => {
    await what.first().waitFor();
    for (let presses = 0; presses < 200; presses++) {
      if (await what.first().evaluate((it) => it === document.activeElement)) return;
      await page.keyboard.press('Tab');
      const hidden = await page.evaluate(unseenFocus);
      if (hidden) unseen.push(hidden);
    }
    throw new Error(`the Tab key does not lead to ${what}`);
  };
  return {
    unseen,
    to,
    press: async (what) => {
      await to(what);
      await page.keyboard.press('Enter');
    },
    /** Says whether what has the focus points at an option of its list. */
    points: async (option) =>
      (await option.evaluateAll((all) => all[0]?.getAttribute('data-combobox-selected'))) === 'true',
    at: () =>
      page.evaluate(() => {
        const it = document.activeElement;
        return `${it?.tagName} ${it?.getAttribute('aria-label') ?? it?.textContent ?? ''}`;
      }),
  };
}

/** What has the focus, if nobody sees that it has: it has no ring, no other border, or is out of sight. */
function unseenFocus() {
  const it = document.activeElement;
  if (!it || it === document.body) return ''; // the browser's own
  const name = `${it.tagName} ${it.getAttribute('aria-label') ?? it.textContent?.slice(0, 60) ?? ''}`;
  const box = it.getBoundingClientRect();
  if (box.bottom <= 0 || box.right <= 0 || box.top >= window.innerHeight || box.left >= window.innerWidth) {
    return `${name} is out of sight`;
  }
  const of = (element) => getComputedStyle(element);
  const ringed = (element) => of(element).outlineStyle !== 'none' && parseFloat(of(element).outlineWidth) >= 1;
  if (ringed(it) || (it.parentElement && ringed(it.parentElement))) return '';
  const probe = document.createElement('i');
  probe.style.color = 'var(--mantine-primary-color-filled)';
  document.body.append(probe);
  const main = of(probe).color;
  probe.remove();
  if (it.matches('input, textarea') && of(it).borderTopColor === main) return '';
  return `${name} has no ring`;
}

/** What the browser and this script took so far: on a busy machine it tells more than the time that went by. */
export async function processorTime(browser) {
  const cdp = await browser.newBrowserCDPSession();
  const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
  const spent = processInfo.reduce((sum, one) => sum + one.cpuTime, 0);
  const { user, system } = process.cpuUsage();
  return `processor time: ${spent.toFixed(1)} s of the browser, ${((user + system) / 1e6).toFixed(1)} s of the script`;
}
