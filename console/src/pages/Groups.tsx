import { lazy, Suspense } from 'react';
import { useSearch } from '../routes/router';
import { SegmentedControl } from '../ui/kit';
import { Coming, Page } from '../ui/parts';

const Tree = lazy(() => import('./groups/Tree'));
const Explain = lazy(() => import('./groups/Explain'));
const File = lazy(() => import('./groups/File'));

/** Groups, which decide what nodes get: the tree, what one node gets and why, and all of them as a file. */
export function Groups() {
  const [search, change] = useSearch();
  const view = search.view === 'explain' || search.view === 'file' ? search.view : 'tree';
  const Shown = { tree: Tree, explain: Explain, file: File }[view];
  return (
    <Page title="Groups" name="Groups">
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'tree', label: 'Groups' },
          { value: 'explain', label: 'Explain a node' },
          { value: 'file', label: 'As a file' },
        ]}
        value={view}
        onChange={(v) => change({ view: v === 'tree' ? '' : v, find: '' }, false)}
      />
      <Suspense fallback={<Coming />}>
        <Shown />
      </Suspense>
    </Page>
  );
}
