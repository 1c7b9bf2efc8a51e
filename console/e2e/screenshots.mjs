// Screenshots of the pages, at three widths and in both themes. Started by `make screenshots`.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open, setting, settled } from './world.mjs';

const base = setting('TUTTI_CONSOLE');
const red = setting('TUTTI_RED');
const out = setting('TUTTI_SCREENSHOTS');
const pages = {
  overview: '/',
  nodes: '/nodes?order=state',
  node: `/nodes/${red}`,
  graph: `/nodes/${red}?view=graph&box=Service%5Bapp%5D`,
  catalog: `/nodes/${red}?tab=resources&view=graph`,
  resources: `/nodes/${red}?tab=resources`,
  facts: `/nodes/${red}?tab=facts`,
  runs: `/nodes/${red}?tab=runs`,
  variants: '/resources?title=%2Fsrv%2Fapp.conf',
  values: '/facts?path=%5B%22os%22%2C%22family%22%5D',
  versions: '/versions',
  spread: '/versions?view=spread',
  generations: '/nodes/sim-0001.example.test?tab=generations',
  'node-groups': '/nodes/sim-0001.example.test?tab=groups',
  mistakes: '/versions?environment=staging&view=mistakes',
  previews: '/previews',
  preview: '/previews/1',
  difference: '/previews/1?view=nodes&node=sim-0001.example.test',
  releases: '/releases',
  release: '/releases/1',
  jobs: '/jobs',
  job: '/jobs/1',
  events: '/events',
  groups: '/groups',
  group: '/groups/Web%20servers',
  'group-nodes': '/groups/Web%20servers?view=nodes',
  explain: `/groups?view=explain&all=yes&node=${red}`,
  'groups-file': '/groups?view=file',
  tasks: '/tasks',
  task: '/tasks/web%3A%3Arestart?p.action=reload&where=certname%20~%20%22%5Esim-000%22',
  'task-about': '/tasks/web%3A%3Arestart?view=about',
  actions: '/actions',
  module: '/actions/service',
  action: '/actions/service?action=status&p.service=ssh&by=all',
  calls: '/actions?view=calls',
  saved: '/queries',
  query: `/queries?q=${encodeURIComponent('nodes[certname, latest_report_status, report_timestamp]{latest_report_status = "failed" or certname ~ "^sim-000" order by certname}')}`,
  queue: '/queue',
  policies: '/policies',
  certificates: '/certificates',
  access: '/access',
  role: '/access?view=roles&name=viewer',
  tokens: '/access?view=tokens',
  audit: '/audit',
  about: '/about',
};

mkdirSync(out, { recursive: true });
const browser = await launch();
const { page, context } = await open(browser);
const only = process.env.PAGES?.split(' ') ?? []; // some of them
const sizes = [390, 1024, 1600].flatMap((width) => ['light', 'dark'].map((theme) => ({ width, theme })));

async function take(name, { width, theme }) {
  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize({ width, height: width < 600 ? 844 : 900 });
  await page.waitForTimeout(150);
  await page.screenshot({ path: join(out, `${name}-${width}-${theme}.png`) });
}

await page.goto(`${base}/login`);
await settled(page);
for (const size of sizes) await take('login', size);
await page.goto(setting('TUTTI_CONSOLE_LINK'));
await page.getByRole('heading', { name: 'Overview' }).waitFor();
for (const [name, path] of Object.entries(pages)) {
  if (only.length > 0 && !only.includes(name)) continue;
  await page.goto(base + path);
  await settled(page);
  await page.waitForLoadState('load');
  await page.waitForFunction(() => document.querySelector('[data-testid=link]')?.textContent?.includes('live'));
  for (const size of sizes) await take(name, size);
}
// What comes of a question is no address: it is asked, and looked at.
await page.goto(`${base}${pages.action}`);
await page.getByRole('button', { name: 'Ask' }).click();
await page.getByText(/answered in/).waitFor();
for (const size of sizes) await take('answers', size);
await page.goto(`${base}/groups/Web%20servers`);
await page.getByRole('button', { name: 'Change…' }).click();
await page.getByRole('dialog').waitFor();
for (const size of sizes) await take('group-form', size);
await page.goto(`${base}${pages.task}`);
await page.getByRole('button', { name: 'Run…' }).click();
await page.getByRole('dialog').getByText(/nodes/).first().waitFor();
for (const size of sizes) await take('order', size);
await page.goto(`${base}/queries?q=${encodeURIComponent('nodes[certnam]{}')}`);
await page.locator('.cm-lintRange-error').waitFor();
for (const size of sizes) await take('query-error', size);

// Those of the README: small, in one theme, and committed.
const pictures = setting('TUTTI_PICTURES');
mkdirSync(pictures, { recursive: true });
await page.emulateMedia({ colorScheme: 'light' });
await page.setViewportSize({ width: 1120, height: 700 });
for (const [name, path] of Object.entries({
  overview: '/',
  'why-red': `/nodes/${red}?view=graph&box=Service%5Bapp%5D`,
  preview: '/previews/1',
  release: '/releases/1',
})) {
  await page.goto(base + path);
  await settled(page);
  await page.waitForFunction(() => document.querySelector('[data-testid=link]')?.textContent?.includes('live'));
  await page.setViewportSize({ width: 1120, height: { 'why-red': 980, release: 720 }[name] ?? 700 });
  await page.waitForTimeout(150);
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}
await context.close();
await browser.close();
