// Journeys through the console in a real browser, against a real server. Started by TestConsole of e2e.
import assert from 'node:assert/strict';
import { tellChanges } from './journeys/changes.mjs';
import { tellGroups } from './journeys/groups.mjs';
import { tellEveryPage, tellWhatWasChosen } from './journeys/pages.mjs';
import { tellReader } from './journeys/reader.mjs';
import { tellReading } from './journeys/reading.mjs';
import { tellSettings } from './journeys/settings.mjs';
import { tellWork } from './journeys/work.mjs';
import { ended, journey, lane } from './lane.mjs';
import { further, launch, open, processorTime, setting } from './world.mjs';

const link = setting('TUTTI_CONSOLE_LINK');
const browser = await launch();
const first = await open(browser);
const { context, page } = first;

await journey('a link logs in once', async () => {
  await page.goto(link);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.equal(new URL(page.url()).hash, '', 'the code is not left in the address');
  const cookies = await context.cookies();
  const session = cookies.find((c) => c.name === 'tutti_session');
  assert.equal(session?.httpOnly, true);
  assert.equal(session?.sameSite, 'Strict');
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts see no cookie');
  const other = await open(browser);
  await other.page.goto(link);
  await other.page.getByText('the login code is wrong, was used').waitFor();
  await other.context.close();
});

// While nodes are at work for the journeys of changes, others are told. What groups give is an input of catalogs: they come after the releases.
const lanes = [lane(first), lane(await further(context))];
const [job] = await Promise.all([
  (async () => {
    const address = await tellChanges(lanes[0]);
    await tellGroups(lanes[0]);
    return address;
  })(),
  (async () => {
    await tellReading(lanes[1]);
    await tellWork(lanes[1]);
    await tellSettings(lanes[1]);
  })(),
]);
await Promise.all([tellEveryPage(lanes, job), tellReader(browser, job)]);
await tellWhatWasChosen(lanes[0]);

await journey('an act without the token against forged requests is refused', async () => {
  const status = await page.evaluate(
    async () => (await fetch('/api/v1/jobs/1/stop', { method: 'POST', body: '{}' })).status,
  );
  assert.equal(status, 403);
  lanes[0].forgive(403);
});

await journey('nothing was said in the browser’s console', async () => {
  assert.deepEqual(
    lanes.flatMap((told) => told.said),
    [],
  );
});

process.stdout.write(`${await processorTime(browser)}\n`);
await browser.close();
process.exit(ended() ? 0 : 1);
