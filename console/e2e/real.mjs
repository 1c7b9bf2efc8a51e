// Puppet is run on real nodes, and why one of them is red: in a real browser, against a real server. Started by TestConsoleWithRealNodes of e2e.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { base, ended, journey, lane, red, total } from './lane.mjs';
import { launch, open, processorTime, setting, settled } from './world.mjs';

const good = setting('TUTTI_GOOD');
const both = `/nodes?where=${encodeURIComponent('certname ~ "real.test$"')}`;
const browser = await launch();
const told = lane(await open(browser));
const { page, tellCommand } = told;

await journey('both nodes are live, and never ran Puppet', async () => {
  await page.goto(setting('TUTTI_CONSOLE_LINK'));
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.goto(base + both);
  await page.getByRole('table', { name: new RegExp(`Nodes, ${total} rows`) }).waitFor();
  for (const name of [good, red])
    await page.getByRole('row', { name: new RegExp(`${name}.*never ran.*live`) }).waitFor();
  await tellCommand();
});

await journey('a run that only shows changes nothing', async () => {
  await orders({ noop: true });
  await page.locator('h1').getByText('finished').waitFor();
  await page.getByText(`${total} nodes, puppet, noop`).waitFor();
  await came(good, 'succeeded', 'would change 1');
  await came(red, 'succeeded', 'would change 3');
  await page.goto(base + both);
  for (const name of [good, red]) await page.getByRole('row', { name: new RegExp(`${name}.*pending.*live`) }).waitFor();
  assert.equal(existsSync(setting('TUTTI_FILE')), false, 'the file of the good node');
});

await journey('Puppet is run on both: it changes one and fails on the other', async () => {
  await orders({ noop: false });
  await page.locator('h1').getByText('failed').waitFor();
  await page.getByRole('region', { name: 'Numbers' }).getByRole('button', { name: '1 failed' }).waitFor();
  await came(good, 'succeeded', 'changed');
  await came(red, 'failed', /^File\[.nonexistent.app.app\.conf\]: .*: No such file or directory/);
  await tellCommand();
});

await journey('why is the node red, in three clicks', async () => {
  await page.goto(`${base}/`);
  await page.getByRole('link', { name: '1 failed' }).waitFor();
  assert.equal(await page.getByRole('link', { name: `Why is ${good} red?` }).count(), 0, 'the other node is not red');
  await page.getByRole('link', { name: `Why is ${red} red?` }).click();
  const why = page.getByRole('region', { name: 'Why it is red' });
  await why.getByText('1 resource failed, 2 skipped').waitFor();
  const code = why.getByRole('figure', { name: /Code around / }).first();
  const here = code.locator('[data-here=true]');
  await here.waitFor();
  // What waited for it, and what waited for that.
  const waited = why.getByRole('list', { name: 'Skipped because of File[/nonexistent/app/app.conf]' });
  const first = waited.getByRole('listitem').first();
  const then = first.getByRole('list', { name: 'Skipped because of Notify[the app is configured]' });
  process.stdout.write(
    `shown: ${JSON.stringify({
      message: await why.locator('pre.output').first().innerText(),
      place: await why.getByRole('button', { name: /:\d+$/ }).first().innerText(),
      code: (await here.innerText()).trimEnd(),
      skipped: [await skippedIn(first), await skippedIn(then)],
    })}\n`,
  );
  await page.getByRole('region', { name: 'The last run that did not fail' }).getByText('the same').waitFor();
  await tellCommand(code);
  await tellCommand();
});

await journey('nothing was said in the browser’s console', async () => {
  assert.deepEqual(told.said, []);
});

process.stdout.write(`${await processorTime(browser)}\n`);
await browser.close();
process.exit(ended() ? 0 : 1);

/** Orders Puppet on the nodes of the list, and waits for the job's page. */
async function orders({ noop }) {
  await page.goto(base + both);
  await settled(page);
  await page.getByRole('button', { name: 'Run Puppet…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Only show what would change').setChecked(noop);
  await dialog
    .getByText(`tutti run --where 'certname ~ "real.test$"'${noop ? ' --noop' : ''}`, { exact: true })
    .waitFor();
  await dialog.getByText(`${total} nodes.`, { exact: true }).waitFor(); // none is named as not connected
  await dialog.getByRole('button', { name: `Run on ${total} nodes` }).click();
  await page.waitForURL(/\/jobs\/\d+/);
}

/** Waits until the job's page says what came of a node's run. */
async function came(name, state, what) {
  await page
    .getByRole('table', { name: `Runs, ${total} rows` })
    .getByRole('row', { name: new RegExp(`${name} ${state} `) })
    .getByRole('cell', { name: what, exact: true })
    .waitFor();
}

/** The first resource of a part of the tree. */
async function skippedIn(part) {
  return part.locator('.state + span').first().innerText();
}
