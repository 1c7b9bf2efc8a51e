import { Link } from '../routes/router';
import { Empty, Page } from '../ui/parts';

export function NoPage() {
  return (
    <Page title="There is no such page" name="No such page">
      <Empty title="The address is of no page of this console">
        <Link to="/">Go to the overview</Link>
      </Empty>
    </Page>
  );
}
