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

/** A window; what its console says is kept in `said`. */
export async function open(browser, { theme = 'light', width = 1280, height = 800 } = {}) {
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    ignoreHTTPSErrors: true,
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const said = [];
  page.on('console', (m) => said.push(`${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => said.push(`error: ${e.message}`));
  return { context, page, said };
}

/** What axe finds that is serious. It is run beside the page's own scripts: the page's policy lets no other script in. */
export async function findings(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }),
  );
  return result.violations
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
