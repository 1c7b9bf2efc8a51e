// Reading: the fleet, its nodes, and why one is red.
import assert from 'node:assert/strict';
import { base, named, red, total } from '../lane.mjs';
import { settled } from '../world.mjs';

export async function tellReading({ page, journey, forgive, tellCommand }) {
  await journey('the headline adds up, and each number leads to its rows', async () => {
    await page.goto(`${base}/`);
    await page.getByRole('link', { name: `${total} nodes` }).waitFor();
    await page.getByTestId('link').getByText('live').waitFor();
    await page.getByRole('link', { name: '1 failed' }).click();
    await page.getByRole('table', { name: /Nodes, 1 row/ }).waitFor();
    assert.match(page.url(), /state=failed/);
    await page.getByRole('link', { name: red }).waitFor();
  });

  await journey('why is this node red, in three clicks', async () => {
    await page.goto(`${base}/`);
    await page.getByRole('link', { name: `Why is ${red} red?` }).click();
    const why = page.getByRole('region', { name: 'Why it is red' });
    await why.getByText('could not be written: no space left on device').waitFor();
    await why
      .getByText(/site\.pp:\d+/)
      .first()
      .waitFor();
    // The code is that of the version which was applied: its failing line is marked.
    await why
      .getByRole('figure', { name: /Code around manifests.site\.pp:2/ })
      .locator('[data-here=true]')
      .getByText("file { '/srv/app.conf':")
      .waitFor();
    const tree = why.getByRole('list', { name: `Skipped because of File[/srv/app.conf]` });
    await tree.getByText('Service[app]').first().waitFor();
    await page.getByRole('region', { name: 'The last run that did not fail' }).waitFor();
    assert.equal(await page.getByTestId('command').locator('code').last().innerText(), `tutti node why ${red}`);
    await tellCommand(page.getByRole('figure'));
  });

  await journey('what was skipped as a graph and as a table, by keys', async () => {
    await page.goto(`${base}/nodes/${red}`);
    await page.getByText('Graph', { exact: true }).click();
    await page.waitForURL(/view=graph/);
    const graph = page.getByRole('group', { name: /What failed, and what was skipped for it: 2 boxes/ });
    const failed = graph.getByRole('button', { name: /^File\[\/srv\/app\.conf\], failed/ });
    const skipped = graph.getByRole('button', { name: 'Service[app], skipped; waits for File[/srv/app.conf]' });
    await failed.focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await skipped.evaluate((box) => document.activeElement === box), true, 'a key leads along the line');
    assert.equal(await graph.locator('[data-near=true]').count(), 1, 'the line is marked');
    await page.keyboard.press('Enter');
    const about = page.getByRole('region', { name: 'About Service[app]' });
    await about.getByRole('button', { name: 'File[/srv/app.conf]' }).click();
    await page.getByRole('region', { name: 'About File[/srv/app.conf]' }).waitFor();
    const above = await failed.boundingBox();
    const below = await skipped.boundingBox();
    assert.ok(above.y + above.height < below.y, 'what waits stands below');
    await tellCommand(page.getByRole('region', { name: 'Why it is red' }));
    await page.getByText('Table', { exact: true }).click();
    await page
      .getByRole('table', { name: /What waits for what, 2 rows/ })
      .getByRole('row', { name: /Service\[app\].*File\[\/srv\/app\.conf\]/ })
      .waitFor();
    await page.goto(`${base}/nodes/${red}?tab=resources&view=graph&near=${encodeURIComponent('Service[app]')}`);
    await page.getByRole('group', { name: /The catalog: \d boxes/ }).waitFor();
    await page.getByRole('button', { name: /Show all, not only what is tied to Service\[app\]/ }).click();
    await page.waitForURL((address) => !address.search.includes('near='));
  });

  await journey('the list is sorted, filtered and paged by the server', async () => {
    await page.goto(`${base}/nodes`);
    await settled(page);
    assert.equal(await page.getByTestId('total').innerText(), String(total));
    await page.getByRole('button', { name: 'Last run' }).click();
    await page.waitForURL(/order=state/);
    const first = page.locator('.grid-row').first();
    await first.getByText(red).waitFor();
    await page.getByLabel('Condition').fill('certname ~ "^sim-000"');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL(/where=/);
    await page.getByRole('table', { name: /Nodes, \d+ rows?\./ }).waitFor();
    await page.reload();
    await settled(page);
    assert.equal(
      await page.getByLabel('Condition').inputValue(),
      'certname ~ "^sim-000"',
      'a copied address opens the same',
    );
    await page.getByLabel('Condition').fill('certname = ');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('alert').waitFor();
    forgive(400);
    await page.goBack();
    await page.getByRole('table', { name: /Nodes, \d+ rows?\./ }).waitFor();
  });

  await journey('keys alone: to the nodes, to one of them', async () => {
    await page.goto(`${base}/`);
    await settled(page);
    await page.keyboard.press('g');
    await page.keyboard.press('n');
    await page.getByRole('heading', { name: /Nodes/ }).waitFor();
    await settled(page);
    await page.locator('.grid-row').first().waitFor();
    await page.getByRole('table').focus();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/nodes\/.+/);
    await settled(page);
  });

  await journey('the tabs of a node', async () => {
    await page.goto(`${base}/nodes/${red}?tab=resources`);
    await page.getByRole('button', { name: 'Open File[/srv/app.conf]' }).click();
    await page.getByRole('dialog').getByText('workers = 4').waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${base}/nodes/${red}?tab=facts&find=family`);
    await page
      .getByRole('link', { name: /Debian: nodes with this value/ })
      .first()
      .waitFor();
    await page.goto(`${base}/nodes/${red}?tab=runs`);
    await page.getByRole('table', { name: /Runs/ }).getByRole('button').first().click();
    await page
      .getByRole('table', { name: /Resources of the run/ })
      .getByText('File[/srv/app.conf]')
      .waitFor();
    await page.goto(`${base}/nodes/${red}?tab=jobs`);
    await page.getByText('No job was ordered for this node').waitFor();
    await page.goto(`${base}/nodes/${named}`);
    await page.getByRole('tab', { name: 'Generations' }).click();
    await page.getByText(/In released mode, by the group All Nodes/).waitFor();
    await page
      .getByRole('table', { name: /^Generations/ })
      .getByRole('row')
      .nth(1)
      .waitFor();
    await page.getByRole('tab', { name: 'Groups' }).click();
    await page.getByRole('table', { name: 'Groups of the node' }).getByRole('link', { name: 'All Nodes' }).waitFor();
    await page.getByText(`tutti group explain ${named}`).waitFor();
  });

  await journey('the code of an environment, and what is wrong in it by file and line', async () => {
    await page.goto(`${base}/versions`);
    const table = page.getByRole('table', { name: /Versions of production, 1 row/ });
    await table.getByText('current').waitFor();
    await page.goto(`${base}/versions?environment=staging&view=mistakes`);
    await page
      .getByRole('list', { name: 'Findings' })
      .getByText(/app\.pp:\d+/)
      .first()
      .waitFor();
  });

  await journey('which values a fact has, and the nodes that have one', async () => {
    await page.goto(`${base}/facts?find=os.family`);
    await page.getByRole('link', { name: 'os.family' }).click();
    await page.getByRole('link', { name: 'RedHat: nodes with this value' }).click();
    await page.waitForURL(/nodes.*where=/);
    await page.getByRole('table', { name: /Nodes, \d+ rows?\./ }).waitFor();
  });

  await journey('pages that are not there, and things that are not', async () => {
    await page.goto(`${base}/nothing/here`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  });
}
