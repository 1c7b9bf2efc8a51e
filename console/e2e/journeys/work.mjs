// Work: tasks, actions and queries.
import assert from 'node:assert/strict';
import { base, named, total } from '../lane.mjs';

export async function tellWork({ page, journey, forgive }) {
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
    await page.locator('h1').getByText('finished').waitFor();
    await page.goto(`${page.url()}?view=output`);
    await page
      .getByRole('region', { name: /^Output of/ })
      .first()
      .getByText('reload')
      .waitFor();
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
      .waitFor();
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
    await typedOver(editor, 'nodes[certname, catalog_environment]{certname ~ "^sim-000" order by certname}');
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
}

/** Types over all that stands in an editor, before the browser has told the editor what was selected. */
const typedOver = (editor, text) =>
  editor.evaluate((element, data) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    const { startContainer, startOffset, endContainer, endOffset } = range;
    const targetRanges = [new StaticRange({ startContainer, startOffset, endContainer, endOffset })];
    element.dispatchEvent(
      new InputEvent('beforeinput', { inputType: 'insertText', data, targetRanges, bubbles: true, cancelable: true }),
    );
  }, text);
