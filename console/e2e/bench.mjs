// Cases of bench/console in a real browser. Prints the figures of one case as JSON.
import assert from 'node:assert/strict';
import { launch, open, setting, settled } from './world.mjs';

const base = setting('TUTTI_CONSOLE');
const total = Number(setting('TUTTI_NODES'));
const views = Number(setting('TUTTI_VIEWS'));

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Counts what a page fetches. */
async function counted(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  const sum = { bytes: 0, requests: 0 };
  cdp.on('Network.loadingFinished', (e) => {
    sum.bytes += e.encodedDataLength;
    sum.requests++;
  });
  return sum;
}

/** How long a page takes from its address to something on it. */
async function until(page, address, selector) {
  await page.goto(address, { waitUntil: 'commit' });
  await page.waitForSelector(selector, { state: 'attached' });
  return page.evaluate(() => performance.now());
}

/** How long it takes from an act to what it leads to; both are functions in the page. */
async function acted(page, act, done, argument) {
  await page.evaluate(() => {
    globalThis.begun = 0;
    addEventListener('click', () => (globalThis.begun ||= performance.now()), { capture: true, once: true });
  });
  await act();
  await page.waitForFunction(done, argument, { polling: 'raf' });
  return page.evaluate(() => performance.now() - globalThis.begun);
}

/** How names of some nodes begin: of a thousandth of them, in a small fleet of a tenth. */
const named = (i) => (total < 1000 ? `000${i + 1}` : `0${i + 1}0`);

const cases = {
  /** The list with an empty cache, filtered, and sorted. */
  async list() {
    const firsts = [];
    let bytes = 0;
    let requests = 0;
    const cookies = await page.context().cookies();
    for (let i = 0; i < 5; i++) {
      const fresh = await open(browser);
      await fresh.context.addCookies(cookies);
      const sum = await counted(fresh.page);
      firsts.push(await until(fresh.page, `${base}/nodes`, '.grid-row'));
      await settled(fresh.page);
      await fresh.page.waitForFunction(
        (n) => document.querySelector('[data-testid=total]')?.textContent?.replace(/\D/g, '') === String(n),
        total,
      );
      ({ bytes, requests } = sum);
      await fresh.context.close();
    }
    const filtered = [];
    const sorted = [];
    for (let i = 0; i < 5; i++) {
      await page.goto(`${base}/nodes`);
      await settled(page);
      await page.getByLabel('Condition').fill(`certname ~ "^node-${named(i)}"`);
      filtered.push(
        await acted(
          page,
          () => page.getByRole('button', { name: 'Filter' }).click(),
          (name) =>
            document.querySelector('.grid')?.getAttribute('aria-busy') !== 'true' &&
            document.querySelector('.grid-row')?.textContent?.includes(name),
          `node-${named(i)}`,
        ),
      );
      await page.goto(`${base}/nodes`);
      await settled(page);
      sorted.push(
        await acted(
          page,
          () => page.getByRole('button', { name: 'Last run' }).click(),
          () =>
            document.querySelector('.grid')?.getAttribute('aria-busy') !== 'true' &&
            location.search.includes('order=state') &&
            document.querySelector('.grid-row') !== null,
        ),
      );
    }
    return {
      first_rows_ms: median(firsts),
      filtered_ms: median(filtered),
      sorted_ms: median(sorted),
      kb: bytes / 1000,
      requests,
    };
  },
  /** The list again and again, for the server's time. */
  async views() {
    for (let i = 0; i < views; i++) {
      await page.goto(`${base}/nodes`);
      await settled(page);
    }
    return {};
  },
  async sorted() {
    for (let i = 0; i < views; i++) {
      await page.goto(`${base}/nodes?order=state`);
      await settled(page);
    }
    return {};
  },
  async preview() {
    const opened = [];
    for (let i = 0; i < 5; i++) opened.push(await until(page, `${base}/previews/1`, '.changes > li'));
    return { opened_ms: median(opened) };
  },
  /** A job over all nodes, from its order to its end. */
  async job() {
    await page.goto(`${base}/jobs`);
    await settled(page);
    const id = await page.evaluate(async () => {
      const { csrf } = await (await fetch('/session')).json();
      const headers = { 'Content-Type': 'application/json', 'X-Tutti-Csrf': csrf };
      const body = JSON.stringify({ targets: { all: true }, command: 'uptime' });
      return (await (await fetch('/api/v1/jobs/command', { method: 'POST', headers, body })).json()).job.id;
    });
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Network.enable');
    let summaries = 0;
    let first = 0;
    let last = 0;
    cdp.on('Network.eventSourceMessageReceived', (e) => {
      if (!e.data.startsWith('{') || !JSON.parse(e.data).job?.counts) return;
      summaries++;
      first ||= e.timestamp;
      last = e.timestamp;
    });
    await page.addInitScript(() => {
      const seen = { tasks: [], frames: 0, begun: performance.now() };
      globalThis.seen = seen;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) seen.tasks.push([entry.startTime, entry.duration]);
      }).observe({ type: 'longtask', buffered: true });
      const frame = () => {
        seen.frames++;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    await page.goto(`${base}/jobs/${id}`);
    await page.locator('h1').getByText('finished').waitFor({ timeout: 300_000 });
    const seen = await page.evaluate(() => ({ ...globalThis.seen, ended: performance.now() }));
    const live = seen.tasks.filter(([start]) => start > 1500); // what the page is opened with is another matter
    const long = live.filter(([, took]) => took > 100);
    const pairs = long.filter(([start], i) => i > 0 && start - (long[i - 1][0] + long[i - 1][1]) < 50).length;
    return {
      done_s: (seen.ended - seen.begun) / 1000,
      frames_per_s: (1000 * seen.frames) / (seen.ended - seen.begun),
      long_tasks: long.length,
      long_pairs: pairs,
      worst_task_ms: Math.max(0, ...live.map(([, took]) => took)),
      summaries_per_s: last - first > 1 ? (summaries - 1) / (last - first) : 0,
    };
  },
  /** Puppetboard's list of nodes. */
  async board() {
    const address = setting('TUTTI_BOARD');
    const firsts = [];
    let bytes = 0;
    let requests = 0;
    for (let i = 0; i < 3; i++) {
      const fresh = await open(browser);
      fresh.context.setDefaultTimeout(120_000);
      const sum = await counted(fresh.page);
      await fresh.page.goto(address, { waitUntil: 'commit', timeout: 120_000 });
      await fresh.page.waitForSelector('table tbody tr td a', { state: 'visible' });
      firsts.push(await fresh.page.evaluate(() => performance.now()));
      await fresh.page.waitForLoadState('load');
      ({ bytes, requests } = sum);
      await fresh.context.close();
    }
    return { first_rows_ms: median(firsts), kb: bytes / 1000, requests };
  },
};

const name = process.argv[2];
assert.ok(Object.hasOwn(cases, name), `there is no case ${name}`);
const browser = await launch();
const { page } = await open(browser);
await page.goto(setting('TUTTI_CONSOLE_LINK'));
await page.getByRole('heading', { name: 'Overview' }).waitFor();
const figures = await cases[name]();
await browser.close();
process.stdout.write(JSON.stringify(figures));
