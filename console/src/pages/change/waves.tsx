import type { ReleaseOptions, ReleaseReport, ReleaseWave } from '../../api/client';
import { Choice } from '../../ui/filters';
import { Checkbox, SimpleGrid, Stack, Text, TextInput } from '../../ui/kit';
import { State } from '../../ui/parts';
import { count, listed, many, visible } from '../../ui/words';

/** How a release goes on, as the form has it. */
export interface Going {
  waves: string;
  failures: string; // a number, or empty: no bound
  promote: string; // empty: at once; manual; or minutes
  noop: boolean;
  wait: boolean;
  approve: string;
  description: string;
}

export const atOnce: Going = {
  waves: '',
  failures: '0',
  promote: '',
  noop: false,
  wait: false,
  approve: '',
  description: '',
};

/** What the form asks the API for. */
export function optionsOf(g: Going): ReleaseOptions & { description?: string } {
  const minutes = Number(g.promote);
  return {
    waves: listed(g.waves),
    max_failures: g.failures === '' ? undefined : Number(g.failures),
    promote: g.promote === '' ? undefined : g.promote === 'manual' ? 'manual' : 'soak',
    soak: minutes > 0 ? minutes * 60 : undefined,
    noop_first: g.noop || undefined,
    wait_offline: g.wait ? 1800 : undefined,
    approve_by: g.approve || undefined,
    description: g.description || undefined,
  };
}

/** What the form is on the command line. */
export function flagsOf(g: Going): string[] {
  const words = listed(g.waves).flatMap((size) => ['--wave', size]);
  if (g.failures !== '0') words.push('--max-failures', g.failures || 'none');
  if (g.promote === 'manual') words.push('--promote', 'manual');
  else if (g.promote) words.push('--soak', `${g.promote}m`);
  if (g.noop) words.push('--noop-first');
  if (g.wait) words.push('--wait-offline', '30m');
  if (g.approve) words.push('--approve-by', g.approve);
  if (g.description) words.push('--description', g.description);
  return words;
}

/** Whether the form can be sent. */
export function isWhole(g: Going): boolean {
  return /^\d*$/.test(g.failures);
}

export function WavesForm({ going, set }: { going: Going; set: (change: Partial<Going>) => void }) {
  return (
    <Stack gap="xs">
      <TextInput
        label="Waves"
        description="Shares and numbers (their nodes are drawn by name), @groups, rest; empty: all at once"
        placeholder="1%, 10%, rest"
        value={going.waves}
        onChange={(e) => set({ waves: e.currentTarget.value })}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
        <TextInput
          label="Failures that are borne"
          description="More pause it; empty: no bound"
          inputMode="numeric"
          error={isWhole(going) ? undefined : 'a number of nodes'}
          value={going.failures}
          onChange={(e) => set({ failures: e.currentTarget.value.trim() })}
        />
        <Choice
          label="The next wave begins"
          description="after the one before it"
          any="At once"
          placeholder="at once"
          data={[
            { value: 'manual', label: 'when somebody says so' },
            { value: '5', label: 'after 5 minutes' },
            { value: '30', label: 'after 30 minutes' },
            { value: '1440', label: 'after a day' },
          ]}
          value={going.promote}
          set={(promote) => set({ promote })}
        />
      </SimpleGrid>
      <Checkbox
        label="Run each wave in noop mode first"
        checked={going.noop}
        onChange={(e) => set({ noop: e.currentTarget.checked })}
      />
      <Checkbox
        label="Wait up to 30 minutes for nodes that are not connected"
        checked={going.wait}
        onChange={(e) => set({ wait: e.currentTarget.checked })}
      />
      <TextInput
        label="Approval by"
        description="A role: somebody else who has it must approve; empty: only what policies ask for"
        value={going.approve}
        onChange={(e) => set({ approve: e.currentTarget.value.trim() })}
      />
      <TextInput
        label="What it is about"
        value={going.description}
        onChange={(e) => set({ description: e.currentTarget.value })}
      />
    </Stack>
  );
}

/** How many nodes a release is given to: those that cannot take it are in no wave. */
export function takenBy(plan: ReleaseReport): number {
  return (plan.waves ?? []).reduce((n, w) => n + w.nodes, 0);
}

/** The nodes of a small wave; of a larger one whose nodes are drawn, the first. */
export function named(w: ReleaseWave): string {
  const first = w.first ?? [];
  const more = w.nodes - 3;
  if (first.length === 0 || (more > 0 && (w.size === 'rest' || w.size.startsWith('@')))) return '';
  if (more > 0 && first.length > 3) return `: ${first.slice(0, 3).join(', ')} and ${count(more)} more`;
  return `: ${first.join(', ')}`;
}

/** What would happen, before it does. */
export function Plan({ plan }: { plan: ReleaseReport }) {
  const waves = plan.waves ?? [];
  const left = plan.left ?? [];
  return (
    <section className="card" aria-label="What will happen">
      <Text size="sm" fw={600}>
        {waves.length > 0
          ? `${many(takenBy(plan), 'node')} in ${many(waves.length, 'wave')}`
          : 'No node can be given it'}
      </Text>
      {waves.map((w) => (
        <Text size="sm" key={w.number}>
          wave {w.number} ({w.size}): {many(w.nodes, 'node')}
          {named(w)}
        </Text>
      ))}
      {(plan.already ?? 0) > 0 && (
        <Text size="sm" c="dimmed">
          {many(plan.already!, 'node')} have it already
        </Text>
      )}
      {plan.frozen && <State of="paused">{visible(plan.frozen)}</State>}
      {(plan.findings ?? []).map((f, i) => (
        <div key={i}>
          <State of={f.effect} />{' '}
          <Text size="sm" span>
            {visible(`${f.rule}: ${f.message}`)}
            {f.role ? ` (${f.role})` : ''}
          </Text>
        </div>
      ))}
      {(plan.needs ?? []).map((n, i) => (
        <Text size="sm" key={i}>
          {n.role} has to approve it
        </Text>
      ))}
      {left.length > 0 && (
        <details>
          <summary>
            <Text size="sm" span>
              {count(left.length)}
              {left.length === 100 ? ' or more' : ''} cannot be given it
            </Text>
          </summary>
          <ul>
            {left.map((t) => (
              <li key={t.name}>
                {t.name}: {t.state}
                {t.reason ? `, ${visible(t.reason)}` : ''}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
