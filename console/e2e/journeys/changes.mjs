// Changes: code is previewed and released, and taken back. Each journey builds on those before it.
import assert from 'node:assert/strict';
import { base, named, red, total } from '../lane.mjs';
import { keysOf, settled } from '../world.mjs';

/** Returns the address of a job. */
export async function tellChanges({ page, journey, tellCommand }) {
  let job = '';

  await journey('Puppet is run on nodes, and the job moves while one looks', async () => {
    await page.goto(`${base}/nodes?where=${encodeURIComponent('certname ~ "^sim-000"')}`);
    await settled(page);
    await page.getByRole('button', { name: 'Run Puppet…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/^tutti run --where/).waitFor();
    await dialog.getByLabel('Only show what would change').check();
    await dialog.getByText(/--noop/).waitFor();
    await dialog.getByLabel('Only show what would change').uncheck();
    await dialog.getByRole('button', { name: /^Run on \d+ nodes?$/ }).click();
    await page.waitForURL(/\/jobs\/\d+/);
    job = page.url();
    await page
      .locator('h1')
      .getByText(/finished|failed/)
      .waitFor();
    await page.getByRole('table', { name: /Runs, \d+ rows?\./ }).waitFor();
    await page.getByRole('button', { name: 'Run again…' }).click();
    await page
      .getByRole('dialog')
      .getByText(/^tutti job rerun \d+$/)
      .waitFor();
    await page.keyboard.press('Escape');
  });

  await journey('which nodes have which version, and those of a cell', async () => {
    await page.goto(`${base}/versions?view=spread`);
    const row = page.getByRole('row', { name: /^All Nodes/ });
    await row.waitFor();
    const cell = row.getByRole('link', { name: /nodes of All Nodes with [0-9a-f]+$/ }).first();
    const nodes = Number(await cell.innerText());
    await cell.click();
    await page.waitForURL(/\/nodes\?.*version=/);
    await page.getByRole('table', { name: new RegExp(`^Nodes, ${nodes} rows?\\.`) }).waitFor();
    await tellCommand();
  });

  await journey('a preview is read, and said yes to', async () => {
    await page.goto(`${base}/previews`);
    await page.getByRole('link', { name: 'Preview 1' }).click();
    await page.getByRole('link', { name: '1 do not compile' }).waitFor();
    const changes = page.getByRole('list', { name: 'Changes' });
    await changes.getByRole('listitem').first().getByText('app is not for this node').first().waitFor();
    await changes.getByText('stays on the nodes as it is').waitFor();
    await changes.getByRole('button', { name: /^~ File/ }).click();
    await changes.getByText('+listen = 8080').waitFor();
    await changes.getByRole('button', { name: 'Ack… User[app]' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/^tutti preview ack 1 [0-9a-f]+$/).waitFor();
    await dialog.getByRole('textbox', { name: 'Why' }).fill('seen');
    await dialog.getByRole('button', { name: 'Acknowledge' }).click();
    await changes.getByRole('button', { name: 'Withdraw… User[app]' }).waitFor();
    await page.getByRole('link', { name: `${total - 1} change`, exact: true }).click();
    await page.getByRole('button', { name: `What changes for ${named}` }).click();
    await page.getByRole('dialog').getByText('1 added, 1 removed, 1 changed').waitFor();
    await page.reload();
    await page.getByRole('dialog').getByText('-workers = 4').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Release…' }).click();
    const release = page.getByRole('dialog');
    await release.getByLabel('Waves').fill('2, rest');
    await release.getByText(/wave 1 \(2\): 2 nodes: \S+, \S+$/).waitFor();
    await release.getByText('tutti release create --preview 1 --wave 2 --wave rest').waitFor();
    await release.getByText(/cannot be given it/).click();
    await release
      .getByText(/release 1, which is paused, hands it this catalog/)
      .first()
      .waitFor();
    await page.keyboard.press('Escape');
  });

  await journey('a version is compiled for some nodes', async () => {
    await page.goto(`${base}/versions`);
    await page.getByRole('button', { name: /^Preview [0-9a-f]+/ }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Which nodes').fill(`certname = "${named}"`);
    await dialog.getByRole('button', { name: 'Preview', exact: true }).click();
    await page.waitForURL(/\/previews\/2/);
    await page.locator('h1').getByText('ready').waitFor();
  });

  await journey('the next wave of a release begins, and it is taken back', async () => {
    await page.goto(`${base}/releases`);
    await page.getByRole('link', { name: 'Release 1' }).click();
    await page.getByText('the next one waits to be promoted').first().waitFor();
    await page.getByRole('button', { name: 'Next wave…' }).click();
    await page.getByRole('dialog').getByText('tutti release promote 1').waitFor();
    await page.getByRole('button', { name: /^Begin wave 2, \d+ nodes$/ }).click();
    await page.locator('h1').getByText(/^done/).waitFor();
    await page.getByRole('button', { name: 'Roll back…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('vanish from the catalogs').waitFor();
    await dialog.getByRole('list', { name: 'What changes' }).getByText('User[app]').waitFor();
    await dialog.getByText('tutti rollback --release 1').waitFor();
    await dialog.getByRole('button', { name: /^Roll back \d+ nodes$/ }).click();
    await page.waitForURL(/\/releases\/2/);
    await page.locator('h1').getByText(/^done/).waitFor();
  });

  await journey('keys alone: a change is read, said yes to and released in waves', async () => {
    const go = keysOf(page);
    await page.goto(`${base}/`);
    await settled(page);
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await page.getByRole('table', { name: /^Previews/ }).waitFor();
    await page.getByRole('row', { name: /eight workers/ }).waitFor();
    await go.to(page.getByRole('table', { name: /^Previews/ }));
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/previews\/1$/);
    await settled(page);
    const changes = page.getByRole('list', { name: 'Changes' });
    await go.press(changes.getByRole('button', { name: /^~ File/ }));
    await changes.getByText('+listen = 8080').waitFor();
    await go.press(changes.getByRole('button', { name: 'Ack… Service[app]' }));
    const dialog = page.getByRole('dialog');
    await go.to(dialog.getByRole('textbox', { name: 'Why' }));
    await page.keyboard.type('read by keys alone');
    await go.press(dialog.getByRole('button', { name: 'Acknowledge' }));
    await changes.getByText(/read by keys alone/).waitFor();
    await dialog.waitFor({ state: 'detached' });
    assert.match(await go.at(), /Withdraw… Service\[app\]/, 'after a dialog the focus is where it was');

    await go.press(page.getByRole('button', { name: 'Release…' }));
    await go.to(dialog.getByRole('textbox', { name: 'Which of its nodes' }));
    await page.keyboard.type('certname ~ "^sim-002"');
    await go.to(dialog.getByRole('textbox', { name: 'Waves' }));
    await page.keyboard.type('2, rest');
    await go.to(dialog.getByLabel('The next wave begins').first());
    const choice = page.getByRole('option', { name: 'when somebody says so' });
    for (let presses = 0; presses < 5 && !(await go.points(choice)); presses++) await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await dialog.getByText(/--promote manual/).waitFor();
    await dialog.getByText(/wave 1 \(2\): 2 nodes: sim-002\d\S+, sim-002\d/).waitFor();
    await go.press(dialog.getByRole('button', { name: /^Release to \d+ nodes$/ }));
    await page.waitForURL(/\/releases\/3/);
    await page.getByText('the next one waits to be promoted').first().waitFor();
    await go.press(page.getByRole('button', { name: 'Next wave…' }));
    await go.press(dialog.getByRole('button', { name: /^Begin wave 2, \d+ nodes$/ }));
    await page.locator('h1').getByText(/^done/).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page
      .getByRole('row', { name: /Release 3|^3 / })
      .first()
      .waitFor();
    assert.deepEqual(go.unseen, [], 'what has the focus is seen to have it');
  });

  await journey('events come while one looks', async () => {
    await page.goto(`${base}/events`);
    await settled(page);
    await page.locator('.grid-row').first().waitFor();
    await page.getByRole('button', { name: 'Freeze' }).click();
    await page.getByRole('button', { name: /Go on, \+/ }).waitFor();
  });

  await journey('a policy judges a preview, and a freeze begins', async () => {
    await page.goto(`${base}/policies`);
    await page.getByRole('button', { name: 'New policy…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('services-stay');
    await dialog.getByRole('textbox', { name: 'When' }).fill('change.kind == "removed" and change.type == "Service"');
    await dialog.getByText('warn').click();
    await dialog.getByRole('textbox', { name: 'Message' }).fill('a service is forgotten');
    await dialog.getByRole('button', { name: 'Make' }).click();
    await page.getByRole('button', { name: 'Open services-stay' }).waitFor();
    await page.goto(`${base}/previews/1`);
    await page.getByText('services-stay: a service is forgotten').waitFor();
    await page.goto(`${base}/policies?view=freezes`);
    await page.getByRole('button', { name: 'New freeze…' }).click();
    await dialog.getByRole('textbox', { name: 'Name' }).fill('nights');
    await dialog.getByText('Every week').click();
    await dialog.getByRole('textbox', { name: 'When' }).fill('daily 00:00-23:59');
    await dialog.getByRole('textbox', { name: 'Why' }).fill('nobody is there');
    await dialog.getByRole('button', { name: 'Make' }).click();
    await page.getByRole('button', { name: 'Remove… nights' }).click();
    await dialog.getByText('tutti policy freeze delete nights').waitFor();
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByText('No freezes yet').waitFor();
  });

  await journey('compiling is paused, and goes on', async () => {
    await page.goto(`${base}/queue`);
    await page.getByRole('button', { name: 'Pause…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Why' }).fill('the disk is slow');
    await dialog.getByText("tutti compile pause --reason 'the disk is slow'").waitFor();
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('the disk is slow').waitFor();
    await page.getByRole('button', { name: 'Go on…' }).click();
    await dialog.getByRole('button', { name: 'Go on', exact: true }).click();
    await page.getByText('the disk is slow').waitFor({ state: 'detached' });
  });

  await journey('in how many forms nodes have a resource', async () => {
    await page.goto(`${base}/resources`);
    await page
      .getByRole('table', { name: /Resources of type File/ })
      .getByRole('button', { name: '/srv/app.conf' })
      .click();
    const variants = page.getByRole('region', { name: 'Variants' });
    // Nodes of the first wave have a third one, once the inventory shows what was released to them.
    await variants.getByText(new RegExp(`${total} nodes have it in [23] variants`)).waitFor();
    await variants.getByRole('row', { name: /^≠ mode 0644 (0644 )?0600$/ }).waitFor();
    await variants.getByRole('link', { name: red }).waitFor();
  });

  return job;
}
