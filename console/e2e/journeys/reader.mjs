// A person with a read-only role.
import assert from 'node:assert/strict';
import { base, journey } from '../lane.mjs';
import { findings, open, overflows, setting } from '../world.mjs';
import { pages } from './pages.mjs';

const acts = JSON.parse(setting('TUTTI_ACTS'));
const viewer = { name: setting('TUTTI_VIEWER'), password: setting('TUTTI_VIEWER_PASSWORD') };

/** What can be pressed on a page, but for tabs, boxes of pictures, and what opens in place. */
function pressable() {
  return [...document.querySelectorAll('button, [role=button], [role=menuitem], [role=switch], input[type=submit]')]
    .filter((it) => it.checkVisibility() && !it.disabled && it.getAttribute('aria-disabled') !== 'true')
    .filter((it) => !it.matches('[role=tab], .graph *, [aria-expanded]'))
    .map((it) => it.getAttribute('aria-label') ?? it.textContent.trim());
}

/** The names of what only reads, or is about how one looks at it. */
const reads = [
  /^Copy the command/,
  /^(Use the (light|dark) theme|You are vera|Keys|Menu|Navigation)/,
  /[↕↑↓]$/, // orders a list
  /^(Open|Ask|Explain|What changes for) \S/,
  /^(Show|More|All|Filter|Explain|Ask|Freeze|Go on|Fold|Close|Only what is tied to it|Try again|Toggle password visibility)\b/,
  /^(Any|The first|No) \w+$/, // takes the choice of a list back
  /^Wave \d+/, // shows its nodes
  /(ago|now)$/, // opens a run
  /^\//, // shows the variants of a file
  /^Export (CSV|JSON)$/,
  /^Say…$/, // its menu says what is missing
  /^(Save…|Delete… \S+)$/, // queries of one's own
  /^(New token…|Revoke… .*)$/, // tokens of one's own
  /^[A-Z]\w*(::[A-Z]\w*)*\[.+\]$/, // chooses a resource
  /:\d+$/, // shows a line of code
];

export async function tellReader(browser, job) {
  await journey('a read-only role sees, and cannot act', async () => {
    const theirs = await open(browser);
    await theirs.page.goto(`${base}/nodes`);
    await theirs.page.getByRole('heading', { name: 'Log in to Tutti' }).waitFor();
    await theirs.page.setViewportSize({ width: 390, height: 800 });
    for (const theme of ['light', 'dark']) {
      await theirs.page.emulateMedia({ colorScheme: theme });
      assert.deepEqual([...(await findings(theirs.page)), await overflows(theirs.page)], [''], `the login, ${theme}`);
    }
    const form = await theirs.page.locator('main > *').last().boundingBox();
    assert.deepEqual([form?.x, form?.width], [16, 390 - 32], 'the login does not touch the edges');
    await theirs.page.setViewportSize({ width: 1280, height: 800 });
    await theirs.page.getByLabel('Name').fill(viewer.name);
    await theirs.page.getByRole('textbox', { name: 'Password' }).fill(viewer.password);
    await theirs.page.getByRole('button', { name: 'Log in' }).click();
    await theirs.page.getByRole('table', { name: /Nodes/ }).waitFor();
    assert.match(theirs.page.url(), /\/nodes$/, 'the page that was asked for is shown after the login');
    const run = theirs.page.getByRole('button', { name: 'Run Puppet…' });
    assert.equal(await run.getAttribute('aria-disabled'), 'true');
    assert.match((await run.getAttribute('aria-description')) ?? '', /puppet:run/);
    await run.click({ force: true });
    assert.equal(await theirs.page.getByRole('dialog').count(), 0);
    for (const [path, act, needs] of [
      ['/releases/2', 'Roll back…', 'release:create'],
      ['/previews/1', 'Release…', 'release:create'],
      ['/queue', 'Pause…', 'compile:pause'],
      ['/groups', 'New group…', 'group:write'],
      ['/groups/Web%20servers', 'Change…', 'group:write'],
      ['/tasks/web%3A%3Astatus?by=all', 'Run…', 'task:run'],
      ['/actions/service?action=status&p.service=ssh&by=all', 'Ask', 'action:ask'],
      ['/policies', 'New policy…', 'policy:write'],
      ['/certificates?name=new-1.waits.test', 'Forget…', 'certificate:write'],
    ]) {
      await theirs.page.goto(base + path);
      const button = theirs.page.getByRole('button', { name: act });
      assert.equal(await button.getAttribute('aria-disabled'), 'true', path);
      assert.match((await button.getAttribute('aria-description')) ?? '', new RegExp(needs), path);
    }
    await theirs.page.goto(`${base}/nodes`); // no dialog is over the menu
    await theirs.page.getByRole('table', { name: /Nodes/ }).waitFor();
    assert.equal(
      await theirs.page.getByRole('link', { name: 'Audit log' }).count(),
      0,
      'who may not see it has no way to it',
    );
    assert.deepEqual(theirs.said, []);
    // Whatever else can be pressed on a page changes nothing: all of it is named here.
    const found = [];
    for (const [path] of pages) {
      await theirs.page.goto(path === 'job' ? job : base + path);
      await theirs.page.locator('h1, [role=alert]').first().waitFor();
      await theirs.page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
      for (const name of await theirs.page.evaluate(pressable)) {
        if (!reads.some((known) => known.test(name))) found.push(`${path}: ${name}`);
      }
    }

    assert.deepEqual(found, [], 'a read-only role has buttons for these');
    // The server refuses each act, too, also to a page of ours that shows the right token.
    const taken = await theirs.page.evaluate(async (all) => {
      const { csrf } = await (await fetch('/session')).json();
      const headers = { 'Content-Type': 'application/json', 'X-Tutti-Csrf': csrf };
      const others = [];
      for (const { Name, Method, Path } of all) {
        const { status } = await fetch(Path, { method: Method, headers, body: Method === 'DELETE' ? undefined : '{}' });
        if (status !== 403) others.push(`${Name}: ${status}`);
      }
      return others;
    }, acts);
    assert.deepEqual(taken, [], 'a read-only role is refused each act');
    await theirs.page.getByRole('button', { name: `You are ${viewer.name}` }).click();
    await theirs.page.getByRole('menuitem', { name: 'Log out', exact: true }).click();
    await theirs.page.getByRole('heading', { name: 'Log in to Tutti' }).waitFor();
    await theirs.context.close();
  });
}
