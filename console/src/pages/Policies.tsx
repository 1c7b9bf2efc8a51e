import { lazy, Suspense } from 'react';
import { useSearch } from '../routes/router';
import { SegmentedControl } from '../ui/kit';
import { Coming, Page } from '../ui/parts';

const Rules = lazy(() => import('./policies/Rules'));
const Freezes = lazy(() => import('./policies/Freezes'));

/** What releases must keep to: policies judge changes, freezes stop releases for a time. */
export function Policies() {
  const [search, change] = useSearch();
  const freezes = search.view === 'freezes';
  return (
    <Page title="Policies and freezes" name="Policies and freezes">
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'policies', label: 'Policies' },
          { value: 'freezes', label: 'Freezes' },
        ]}
        value={freezes ? 'freezes' : 'policies'}
        onChange={(v) => change({ view: v === 'freezes' ? v : '' }, false)}
      />
      <Suspense fallback={<Coming />}>{freezes ? <Freezes /> : <Rules />}</Suspense>
    </Page>
  );
}
