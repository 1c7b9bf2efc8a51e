// Settings: certificates, users, tokens and the audit log.
import assert from 'node:assert/strict';
import { base } from '../lane.mjs';
import { settled } from '../world.mjs';

export async function tellSettings({ page, journey }) {
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

  await journey('the audit log has room for what something was done to, also where a window is not wide', async () => {
    const from = page.getByRole('columnheader', { name: 'From', exact: true });
    await page.goto(`${base}/audit`);
    await from.waitFor();
    await page.setViewportSize({ width: 1024, height: 800 });
    await from.waitFor({ state: 'detached' });
    await settled(page);
    const objects = page.getByRole('table', { name: /Audit log/ }).locator('.grid-row [role=cell]:nth-child(4)');
    assert.deepEqual(await objects.evaluateAll(cutOff), []);
    await page.setViewportSize({ width: 1280, height: 800 });
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
}

/** The texts of cells that are cut off, of those with at most 30 letters: longer ones are whole when pointed at. */
function cutOff(cells) {
  return cells
    .filter((cell) => cell.textContent.length <= 30 && cell.scrollWidth > cell.clientWidth)
    .map((cell) => cell.textContent);
}
