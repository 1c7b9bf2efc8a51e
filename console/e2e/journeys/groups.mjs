// Groups: made, changed, explained. What they give is an input of catalogs: no release may be under way.
import { base, red } from '../lane.mjs';
import { further } from '../world.mjs';

const webs = 'name ~ "^sim-000"';

export async function tellGroups({ page, journey, forgive }) {
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
    const other = await further(page.context());
    const theirs = other.page;
    await theirs.goto(`${base}/groups/Web%20servers`);
    await theirs.getByRole('button', { name: 'Change…' }).click();
    await theirs.getByRole('dialog').getByRole('textbox', { name: 'What it is for' }).fill('first');
    await theirs.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
    await theirs.getByText('first').waitFor();
    await other.context.close();
    // The page behind the form is asked for anew when somebody comes back to its window: the form stays that of the group as it was.
    await page.waitForFunction(
      () => {
        globalThis.dispatchEvent(new Event('visibilitychange'));
        return document.querySelector('.pairs')?.textContent?.includes('first');
      },
      undefined,
      { polling: 500 },
    );
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
}
