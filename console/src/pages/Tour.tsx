import { useState } from 'react';
import { useGo, useSearch } from '../routes/router';
import { Button, Group, Text } from '../ui/kit';

/** The tour: what to look at, and where. `tutti demo --keep` says how to begin it. */
const steps = [
  {
    title: 'Why is a node red?',
    text: 'Nodes whose last run failed are here. The page of one begins with what failed first, the line of code, and what was skipped because of it.',
    to: '/nodes',
    search: { state: 'failed' },
  },
  {
    title: 'What would a change do?',
    text: 'Open a preview: what does not compile comes first, then the changes, each with how many nodes it is on. Acknowledge one.',
    to: '/previews',
    search: {},
  },
  {
    title: 'Release it, wave by wave',
    text: 'Release, on the page of a preview, asks for waves and shows who is in which. The page of the release shows each wave while it moves, and lets the next one begin.',
    to: '/releases',
    search: {},
  },
  {
    title: 'Take it back',
    text: 'Roll back, on the page of a release, gives nodes what they had before. It shows first what that changes, and compiles nothing.',
    to: '/releases',
    search: {},
  },
] as const;

const place = 'tutti-tour';

/** Which step is shown, from 1; 0: none. The address begins it, unless it was ended for good. */
export function stepOf(kept: string | null, asked: string | undefined): number {
  if (kept === 'ended') return 0;
  const n = Number(kept ?? (asked ? 1 : 0));
  return Number.isInteger(n) && n >= 0 && n <= steps.length + 1 ? n : 0;
}

export function Tour() {
  const [search] = useSearch();
  const [kept, setKept] = useState(() => localStorage.getItem(place));
  const go = useGo();
  const at = stepOf(kept, search.tour);
  if (at === 0) return null;
  const keep = (value: string) => {
    localStorage.setItem(place, value);
    setKept(value);
  };
  const show = (n: number) => {
    keep(String(n));
    const step = steps[n - 1];
    if (step) go(step.to, step.search);
  };
  const step = steps[at - 1];
  return (
    <section className="card tour" aria-label="Tour">
      <Group justify="space-between" gap="xs">
        <div style={{ flex: '1 1 260px' }}>
          <Text size="sm" fw={600}>
            {step ? `${at} of ${steps.length}: ${step.title}` : 'That was the tour'}
          </Text>
          <Text size="sm">
            {step
              ? step.text
              : 'Your own server begins with `tutti server`, and your first node with `tutti ca token`, which prints the command that joins it.'}
          </Text>
        </div>
        <Group gap="xs">
          {step && (
            <Button size="compact-sm" variant="default" onClick={() => show(at)}>
              Show me
            </Button>
          )}
          {step && (
            <Button size="compact-sm" variant="default" onClick={() => show(at + 1)}>
              Next
            </Button>
          )}
          <Button size="compact-sm" variant="subtle" onClick={() => keep('ended')}>
            End the tour
          </Button>
        </Group>
      </Group>
    </section>
  );
}
