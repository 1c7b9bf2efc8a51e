// Journeys through the console in a real browser, against a real server. Started by TestConsole of e2e.
import assert from 'node:assert/strict';
import { findings, launch, open, overflows, setting, settled } from './world.mjs';

const base = setting('TUTTI_CONSOLE');
const link = setting('TUTTI_CONSOLE_LINK');
const red = setting('TUTTI_RED');
const named = 'sim-0001.example.test';
const total = Number(setting('TUTTI_NODES'));
const viewer = { name: setting('TUTTI_VIEWER'), password: setting('TUTTI_VIEWER_PASSWORD') };

const failures = [];
let ran = 0;

async function journey(name, tell) {
  const begun = Date.now();
  try {
    await tell();
    process.stdout.write(`ok ${name} (${Date.now() - begun} ms)\n`);
  } catch (cause) {
    failures.push(name);
    process.stdout.write(`FAILED ${name}: ${cause.stack}\n`);
  }
  ran++;
}

/** A browser tells of each answer that refuses: those were asked for. */
function forgive(status) {
  const kept = said.filter((text) => !text.includes(`status of ${status}`));
  said.splice(0, said.length, ...kept);
}

const browser = await launch();
const admin = await open(browser);
const { page, said } = admin;
let job = '';

await journey('a link logs in once', async () => {
  await page.goto(link);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.equal(new URL(page.url()).hash, '', 'the code is not left in the address');
  const cookies = await admin.context.cookies();
  const session = cookies.find((c) => c.name === 'tutti_session');
  assert.equal(session?.httpOnly, true);
  assert.equal(session?.sameSite, 'Strict');
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts see no cookie');
  const other = await open(browser);
  await other.page.goto(link);
  await other.page.getByText('the login code is wrong, was used').waitFor();
  await other.context.close();
});

await journey('the headline adds up, and each number leads to its rows', async () => {
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
});

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
    .waitFor({ timeout: 30_000 });
  await page.getByRole('table', { name: /Runs, \d+ rows?\./ }).waitFor();
  await page.getByRole('button', { name: 'Run again…' }).click();
  await page
    .getByRole('dialog')
    .getByText(/^tutti job rerun \d+$/)
    .waitFor();
  await page.keyboard.press('Escape');
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
  await release.getByLabel('Waves').fill('5, rest');
  await release.getByText('wave 1 (5): 5 nodes').waitFor();
  await release.getByText('tutti release create --preview 1 --wave 5 --wave rest').waitFor();
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
  await page.locator('h1').getByText(/^done/).waitFor({ timeout: 40_000 });
  await page.getByRole('button', { name: 'Roll back…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('vanish from the catalogs').waitFor();
  await dialog.getByRole('list', { name: 'What changes' }).getByText('User[app]').waitFor();
  await dialog.getByText('tutti rollback --release 1').waitFor();
  await dialog.getByRole('button', { name: /^Roll back \d+ nodes$/ }).click();
  await page.waitForURL(/\/releases\/2/);
  await page.locator('h1').getByText(/^done/).waitFor({ timeout: 40_000 });
});

await journey('events come while one looks', async () => {
  await page.goto(`${base}/events`);
  await settled(page);
  await page.locator('.grid-row').first().waitFor();
  await page.getByRole('button', { name: 'Freeze' }).click();
  await page.getByRole('button', { name: /Go on, \+/ }).waitFor();
});

await journey('a request for a certificate is signed, and the certificate revoked', async () => {
  await page.goto(`${base}/certificates?state=requested`);
  await page.getByRole('button', { name: 'Open new-1.waits.test' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Sign…' }).click();
  await dialog.getByText('tutti ca sign new-1.waits.test').waitFor();
  await dialog.getByRole('button', { name: 'Sign', exact: true }).click();
  await page.getByText('No request waits').waitFor();
  await page.goto(`${base}/certificates?name=new-1.waits.test`);
  await dialog.getByRole('button', { name: 'Revoke…' }).click();
  await dialog.getByText('tutti ca revoke new-1.waits.test').waitFor();
  await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.goto(`${base}/certificates?state=revoked`);
  await page.getByRole('button', { name: 'Open new-1.waits.test' }).waitFor();
});

await journey('a user is made, given a role, and the log says so', async () => {
  await page.goto(`${base}/access`);
  await page.getByRole('button', { name: 'New user…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('olga');
  await dialog.getByLabel('viewer').check();
  await dialog.getByText('tutti user create olga --role viewer --no-password').waitFor();
  await dialog.getByRole('button', { name: 'Make' }).click();
  await page.getByRole('button', { name: 'Open olga' }).click();
  await dialog.getByLabel('operator').check();
  await dialog.getByText('tutti user edit olga --add-role operator').waitFor();
  await dialog.getByRole('button', { name: 'Change' }).click();
  await page.getByText('viewer, operator').or(page.getByText('operator, viewer')).first().waitFor();
  await page.goto(`${base}/audit?operation=${encodeURIComponent('user.*')}`);
  await page
    .getByRole('table', { name: /Audit log/ })
    .getByRole('button', { name: 'user.edit' })
    .first()
    .click();
  await dialog.getByText('olga').first().waitFor();
});

await journey('a token is made, shown once, and revoked', async () => {
  await page.goto(`${base}/access?view=tokens`);
  await page.getByRole('button', { name: 'New token…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Label' }).fill('ci');
  await dialog.getByRole('button', { name: 'Make' }).click();
  await dialog.getByText(/^tutti_/).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Revoke… ci' }).click();
  await dialog.getByText('Whoever has the token is refused').waitFor();
  await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('button', { name: 'Revoke… ci' }).waitFor({ state: 'detached' });
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
  await variants.getByText(`${total} nodes have it in 2 variants`).waitFor();
  await variants.getByRole('row', { name: '≠ mode 0644 0600' }).waitFor();
  await variants.getByRole('link', { name: red }).waitFor();
});

await journey('which values a fact has, and the nodes that have one', async () => {
  await page.goto(`${base}/facts?find=os.family`);
  await page.getByRole('link', { name: 'os.family' }).click();
  await page.getByRole('link', { name: 'RedHat: nodes with this value' }).click();
  await page.waitForURL(/nodes.*where=/);
  await page.getByRole('table', { name: /Nodes, \d+ rows?\./ }).waitFor();
});

const webs = 'name ~ "^sim-000"';

await journey('a group is made, changed, explained, and its nodes are pinned', async () => {
  await page.goto(`${base}/groups`);
  await page.getByRole('button', { name: 'New group…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Web servers');
  await dialog.getByRole('textbox', { name: 'Rule' }).fill('name ~');
  await dialog.getByRole('button', { name: 'Make' }).click();
  await dialog.getByRole('alert').waitFor();
  forgive(400);
  await dialog.getByRole('textbox', { name: 'Rule' }).fill(webs);
  await dialog.getByRole('button', { name: 'Add a variable' }).click();
  await dialog.getByRole('textbox', { name: 'Variable', exact: true }).fill('tier');
  await dialog.getByRole('textbox', { name: 'Value of tier' }).fill('gold');
  await dialog.getByText(`tutti group create 'Web servers' --rule '${webs}' --variable tier=gold`).waitFor();
  await dialog.getByRole('button', { name: 'Make' }).click();
  await page.waitForURL(/groups\/Web/);
  await page.getByText('$tier = gold').waitFor();
  await page.getByRole('link', { name: '9 nodes' }).waitFor();

  await page.getByRole('button', { name: 'Change…' }).click();
  await dialog.getByRole('textbox', { name: 'What it is for' }).fill('they answer browsers');
  await dialog.getByText("tutti group edit 'Web servers' --description 'they answer browsers'").waitFor();
  await dialog.getByRole('button', { name: 'Change' }).click();
  await page.getByText('they answer browsers').waitFor();

  await page.getByRole('button', { name: 'Pin…' }).click();
  await dialog.getByRole('textbox', { name: 'Nodes' }).fill(red);
  await dialog.getByText(`tutti group edit 'Web servers' --pin ${red}`).waitFor();
  await dialog.getByRole('button', { name: 'Pin', exact: true }).click();
  await page.getByText('Nodes', { exact: true }).last().click();
  await page.getByRole('table', { name: /Nodes of the group, 10 rows/ }).waitFor();
  await page.getByRole('link', { name: `Explain ${red}` }).click();
  const values = page.getByRole('table', { name: 'Values of the node' });
  await values.getByRole('row', { name: /\$tier.*gold.*Web servers.*used/ }).waitFor();
  await page.getByRole('table', { name: 'Groups of the node' }).getByText('in, pinned').waitFor();
  await page.goto(`${base}/groups/Web%20servers?view=nodes`);
  await page.getByRole('button', { name: `Unpin… ${red}` }).click();
  await dialog.getByText(`tutti group edit 'Web servers' --unpin ${red}`).waitFor();
  await dialog.getByRole('button', { name: 'Unpin', exact: true }).click();
  await page.getByRole('table', { name: /Nodes of the group, 9 rows/ }).waitFor();
});

await journey('two people change a group, and the second is told', async () => {
  await page.goto(`${base}/groups/Web%20servers`);
  await page.getByRole('button', { name: 'Change…' }).click();
  const dialog = page.getByRole('dialog');
  const theirs = await admin.context.newPage();
  await theirs.goto(`${base}/groups/Web%20servers`);
  await theirs.getByRole('button', { name: 'Change…' }).click();
  await theirs.getByRole('dialog').getByRole('textbox', { name: 'What it is for' }).fill('first');
  await theirs.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
  await theirs.getByText('first').waitFor();
  await theirs.close();
  await dialog.getByRole('textbox', { name: 'What it is for' }).fill('second');
  await dialog.getByRole('button', { name: 'Change' }).click();
  await dialog.getByRole('alert').waitFor();
  forgive(409);
  await page.reload();
  await page.getByText('first').waitFor();
});

await journey('groups are below each other, and become what a file says', async () => {
  await page.goto(`${base}/groups/Web%20servers`);
  await page.getByRole('button', { name: 'New group below…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Canaries');
  await dialog.getByText("tutti group create Canaries --parent 'Web servers'").waitFor();
  await dialog.getByRole('button', { name: 'Make' }).click();
  await page.waitForURL(/groups\/Canaries/);
  await page.goto(`${base}/groups`);
  const tree = page.getByRole('table', { name: /^Groups/ });
  await tree.getByRole('link', { name: 'Canaries' }).waitFor();
  await page.getByRole('button', { name: 'Groups below Web servers' }).click();
  await tree.getByRole('link', { name: 'Canaries' }).waitFor({ state: 'detached' });

  await page.goto(`${base}/groups?view=file`);
  await page.getByRole('button', { name: 'Begin with the groups of now' }).click();
  const file = page.getByRole('textbox', { name: 'What the groups are to be' });
  await file.fill((await file.inputValue()).replace('gold', 'silver'));
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await page.getByRole('list', { name: 'What changes' }).getByText('variables.tier').waitFor();
  await page.getByRole('button', { name: 'Apply', exact: true }).click();
  await page.getByText('Applied: 1 group changed').waitFor();
  await page.goto(`${base}/groups/Canaries`);
  await page.getByRole('button', { name: 'Delete…' }).click();
  await dialog.getByText('tutti group delete Canaries').waitFor();
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('table', { name: /^Groups, 2 rows/ }).waitFor();
  await page.goto(`${base}/groups/Web%20servers`);
  await page.getByText('$tier = silver').waitFor();
});

await journey('a task has a form made of what it says of itself', async () => {
  await page.goto(`${base}/tasks`);
  await page.getByRole('link', { name: 'web::restart' }).click();
  const run = page.getByRole('button', { name: 'Run…' });
  assert.match((await run.getAttribute('aria-description')) ?? '', /action is missing/);
  await page.getByLabel('action *').first().click();
  await page.getByRole('option', { name: 'reload' }).click();
  await page.getByRole('textbox', { name: 'wait' }).fill('90');
  await page.getByText('wait: at most 60 is expected').waitFor();
  await page.getByRole('textbox', { name: 'wait' }).fill('7');
  await page.getByLabel('Give an empty text as note').check();
  await page.getByRole('textbox', { name: 'password' }).fill('geheim-geheim');
  await page.getByRole('textbox', { name: 'Condition' }).fill('certname ~ "^sim-000"');
  const line = page.getByTestId('command').locator('code').last();
  assert.equal(
    await line.innerText(),
    `tutti task run web::restart action=reload note= wait=7 --ask password --where 'certname ~ "^sim-000"'`,
  );
  await page.waitForURL(/p\.wait=7/);
  assert.doesNotMatch(page.url(), /geheim/, 'no address has a secret');
  await run.click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Failures allowed' }).fill('3');
  await dialog.getByText(/--max-failures 3/).waitFor();
  await dialog.getByRole('button', { name: 'Run on 9 nodes' }).click();
  await page.waitForURL(/\/jobs\/\d+/);
  await page.locator('h1').getByText('finished').waitFor({ timeout: 30_000 });
  await page.goto(`${page.url()}?view=output`);
  await page.getByText('reload').first().waitFor();
  await page.goto(`${base}/tasks/web%3A%3Arestart?view=jobs`);
  await page.getByRole('table', { name: /Jobs/ }).getByRole('link').first().waitFor();
});

await journey('an action that only reads is asked, and the same answers are together', async () => {
  await page.goto(`${base}/actions`);
  await page.getByRole('link', { name: 'service', exact: true }).click();
  await page.getByRole('row', { name: /status.*reads only/ }).waitFor();
  await page.getByRole('row', { name: /restart.*changes nodes/ }).waitFor();
  await page.getByRole('link', { name: 'status' }).click();
  await page
    .getByRole('textbox', { name: /service/i })
    .first()
    .fill('ssh');
  await page.getByText('All', { exact: true }).click();
  await page.getByText('tutti action run service status service=ssh --all').waitFor();
  await page.getByRole('button', { name: 'Ask' }).click();
  const answers = page.getByRole('region', { name: 'Answers' });
  await answers.getByText(`${total} of ${total} nodes answered`).waitFor();
  await answers.getByText(`the same on ${total - 1} nodes`).waitFor();
  await answers.getByRole('region', { name: /^Summary of/ }).waitFor();
  await answers.getByText('unknown action').first().waitFor();
  await page.goto(`${base}/actions?view=calls`);
  await page.getByRole('table', { name: /Calls/ }).getByRole('button').first().click();
  await page.getByRole('dialog').getByText('service status').waitFor();
});

await journey('an action that changes nodes is a job', async () => {
  await page.goto(`${base}/actions/service?action=restart&p.service=ssh&by=nodes&nodes=${named}`);
  await page.getByRole('button', { name: 'Run…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`tutti action run service restart service=ssh --targets ${named}`).waitFor();
  await dialog.getByRole('button', { name: 'Run on 1 node' }).click();
  await page.waitForURL(/\/jobs\/\d+/);
  await page
    .locator('h1')
    .getByText(/finished|failed/)
    .waitFor({ timeout: 30_000 });
});

await journey('a query is written with help, asked, saved and found again', async () => {
  await page.goto(`${base}/queries`);
  const editor = page.getByRole('textbox', { name: 'Query' });
  await editor.click();
  await page.keyboard.type('nodes[cert');
  await page
    .getByRole('option', { name: /certname/ })
    .first()
    .click();
  await page.keyboard.type(']{certnam ~ "^sim-000" }');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+Enter');
  await page
    .getByRole('alert')
    .getByText(/certnam/)
    .first()
    .waitFor();
  await page.locator('.cm-lintRange-error').getByText('certnam').waitFor();
  forgive(400);
  await editor.fill('nodes[certname, catalog_environment]{certname ~ "^sim-000" order by certname}');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('table', { name: /Answer, 9 rows/ }).waitFor();
  await page.getByRole('link', { name: named }).waitFor();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  assert.equal((await saved).suggestedFilename(), 'query.csv');
  await page.getByRole('button', { name: 'Save…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('webs');
  await dialog.getByText(/^tutti query save webs 'nodes/).waitFor();
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Saved queries').click();
  await page.goto(`${base}/queries`);
  await page.getByRole('button', { name: 'Ask webs' }).click();
  await page.getByRole('table', { name: /Answer, 9 rows/ }).waitFor();
  await page.getByRole('link', { name: 'Run a task on them' }).click();
  await page.getByRole('link', { name: 'web::status' }).click();
  await page.getByText(/^tutti task run web::status --query 'nodes/).waitFor();
});

await journey('values are offered behind a comparison', async () => {
  await page.goto(`${base}/queries`);
  await page.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.type('inventory[certname]{facts.os.family = "R');
  await page.getByRole('option', { name: /RedHat/ }).waitFor();
  await page.keyboard.press('Escape');
});

await journey('pages that are not there, and things that are not', async () => {
  await page.goto(`${base}/nothing/here`);
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
});

const pages = [
  ['/', 'Overview'],
  ['/nodes', 'Nodes'],
  [`/nodes/${red}`, red],
  [`/nodes/${red}?tab=resources`, red],
  [`/nodes/${red}?tab=facts`, red],
  [`/nodes/${red}?tab=runs`, red],
  ['/resources', 'Resources'],
  ['/resources?title=%2Fsrv%2Fapp.conf', /app\.conf/],
  ['/facts', 'Facts'],
  ['/facts?path=%5B%22os%22%2C%22family%22%5D', 'os.family'],
  ['/versions', 'Versions'],
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
  ['job', ''],
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

/** Prints the command line that the page shows. TestConsole runs it. */
async function tellCommand(within = page) {
  process.stdout.write(`command: ${await within.getByTestId('command').locator('code').last().innerText()}\n`);
}

for (const theme of ['light', 'dark']) {
  await journey(`every page in the ${theme} theme has no serious finding, and fits its window`, async () => {
    await page.emulateMedia({ colorScheme: theme });
    const found = [];
    for (const [path, name] of pages) {
      await page.goto(path === 'job' ? job : base + path);
      await settled(page);
      if (name) await page.getByRole('heading', { name, level: 1 }).waitFor();
      if (theme === 'light' && path !== '/') await tellCommand(); // the overview is of several commands
      found.push(...(await findings(page)).map((f) => `${path}: ${f}`));
      for (const width of [390, 600, 1024]) {
        await page.setViewportSize({ width, height: 800 });
        const wide = await overflows(page);
        if (wide) found.push(`${path} at ${width} pixels: ${wide}`);
      }
      await page.setViewportSize({ width: 1280, height: 800 });
    }
    assert.deepEqual(found, []);
  });
}

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
  // The server refuses it, too, also to a page of ours that shows the right token.
  const status = await theirs.page.evaluate(async () => {
    const { csrf } = await (await fetch('/session')).json();
    const order = { targets: { all: true } };
    const headers = { 'Content-Type': 'application/json', 'X-Tutti-Csrf': csrf };
    return (await fetch('/api/v1/jobs/puppet', { method: 'POST', headers, body: JSON.stringify(order) })).status;
  });
  assert.equal(status, 403);
  await theirs.page.getByRole('button', { name: `You are ${viewer.name}` }).click();
  await theirs.page.getByRole('menuitem', { name: 'Log out', exact: true }).click();
  await theirs.page.getByRole('heading', { name: 'Log in to Tutti' }).waitFor();
  await theirs.context.close();
});

await journey('an act without the token against forged requests is refused', async () => {
  const status = await page.evaluate(
    async () => (await fetch('/api/v1/jobs/1/stop', { method: 'POST', body: '{}' })).status,
  );
  assert.equal(status, 403);
  forgive(403);
});

await journey('nothing was said in the browser’s console', async () => {
  assert.deepEqual(said, []);
});

await browser.close();
process.stdout.write(`${ran - failures.length} of ${ran} journeys\n`);
process.exit(failures.length > 0 ? 1 : 0);
