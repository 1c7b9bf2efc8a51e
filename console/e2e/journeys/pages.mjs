// Every page, in both themes and at several widths.
import assert from 'node:assert/strict';
import { base, journey, named, red } from '../lane.mjs';
import { findings, overflows, settled } from '../world.mjs';

/** Each page: its address and its heading. A `job` is at an address that is known when one was ordered. */
export const pages = [
  ['/', 'Overview'],
  ['/nodes', 'Nodes'],
  [`/nodes/${red}`, red],
  [`/nodes/${red}?view=graph`, red],
  [`/nodes/${red}?view=table`, red],
  [`/nodes/${red}?tab=resources`, red],
  [`/nodes/${red}?tab=resources&view=graph&box=Service%5Bapp%5D`, red],
  [`/nodes/${red}?tab=facts`, red],
  [`/nodes/${red}?tab=runs`, red],
  [`/nodes/${named}?tab=generations`, named],
  [`/nodes/${named}?tab=groups`, named],
  ['/resources', 'Resources'],
  ['/resources?title=%2Fsrv%2Fapp.conf', /app\.conf/],
  ['/facts', 'Facts'],
  ['/facts?path=%5B%22os%22%2C%22family%22%5D', 'os.family'],
  ['/versions', 'Versions'],
  ['/versions?view=spread', 'Versions'],
  ['/versions?environment=staging&view=mistakes', 'Versions'],
  ['/versions?view=sources', 'Versions'],
  ['/previews', 'Previews'],
  ['/previews/1', /eight workers/],
  ['/previews/1?view=nodes&state=failed', /eight workers/],
  [`/previews/1?view=nodes&node=${named}`, /eight workers/],
  ['/previews/1?view=warnings', /eight workers/],
  ['/releases', 'Releases'],
  ['/releases/1', /eight workers/],
  ['/releases/1?view=log', /eight workers/],
  ['/jobs', 'Jobs'],
  ['job', /^\w/],
  ['/events', 'Events'],
  ['/tasks', 'Tasks'],
  [`/tasks/web%3A%3Arestart?p.action=reload&where=${encodeURIComponent(`certname = "${named}"`)}`, 'web::restart'],
  ['/tasks/web%3A%3Arestart?view=about', 'web::restart'],
  ['/tasks/web%3A%3Arestart?view=jobs', 'web::restart'],
  ['/actions', 'Actions'],
  ['/actions/service', 'service'],
  [`/actions/service?action=status&p.service=ssh&by=nodes&nodes=${named}`, /service status/],
  ['/actions?view=calls', 'Actions'],
  ['/queries', 'Queries'],
  [`/queries?q=${encodeURIComponent('nodes[certname, latest_report_status]{order by certname}')}`, 'Queries'],
  ['/queries?q=facts%7Bname%3D%22os%22%7D&view=json', 'Queries'],
  ['/groups', 'Groups'],
  [`/groups?view=explain&all=yes&node=${named}`, 'Groups'],
  ['/groups/Web%20servers', 'Web servers'],
  ['/groups/Web%20servers?view=nodes', 'Web servers'],
  ['/queue', 'Compile queue'],
  ['/policies', 'Policies and freezes'],
  ['/policies?view=freezes', 'Policies and freezes'],
  ['/certificates', 'Certificates'],
  ['/access', 'Access'],
  ['/access?view=roles&name=viewer', 'Access'],
  ['/access?view=tokens', 'Access'],
  ['/audit', 'Audit log'],
  ['/about', 'About'],
];

const themes = ['light', 'dark'];

/** The windows of some lanes share the pages. */
export async function tellEveryPage(lanes, job) {
  await journey('every page in both themes has no serious finding, and fits its window', async () => {
    const found = [];
    const left = pages.values();
    await Promise.all(
      lanes.map(async (lane) => {
        for (const [path, name] of left) found.push(...(await lookAt(lane, path === 'job' ? job : base + path, name)));
      }),
    );
    assert.deepEqual(found, []);
  });
}

/** What is wrong with a page. Its theme is changed while it is open, as its windows are. */
async function lookAt({ page, tellCommand }, address, name) {
  const found = [];
  await page.goto(address);
  await settled(page);
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  if (address !== `${base}/`) await tellCommand(); // the overview is of several commands
  for (const theme of themes) {
    await page.emulateMedia({ colorScheme: theme });
    found.push(...(await findings(page)).map((f) => `${address}, ${theme}: ${f}`));
  }
  for (const width of [390, 600, 1024]) {
    await page.setViewportSize({ width, height: 800 });
    for (const theme of themes) {
      await page.emulateMedia({ colorScheme: theme });
      const wide = await overflows(page);
      if (wide) found.push(`${address}, ${theme}, at ${width} pixels: ${wide}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}

export async function tellWhatWasChosen({ page, tellCommand }) {
  await journey('the command line has what was chosen', async () => {
    for (const path of [
      `/nodes?where=${encodeURIComponent(`certname = "${red}"`)}&order=-reported`,
      '/nodes?state=failed&connected=never&environment=production',
      '/nodes?connected=yes',
      '/nodes?connected=no',
      `/nodes/${red}?tab=jobs`,
      '/jobs?state=active&kind=action&actor=admin',
      `/events?node=${red}&type=File&status=failure&kind=resource`,
    ]) {
      await page.goto(base + path);
      await settled(page);
      await tellCommand();
    }
  });
}
