import type { JobTargets } from '../../api/client';
import { useAsk } from '../../data/query';
import { mayDo, useSession } from '../../data/session';
import { Choice } from '../../ui/filters';
import { SegmentedControl, Stack, Text, TextInput } from '../../ui/kit';
import { Lines } from '../../ui/parts';
import { listed } from '../../ui/words';
import type { Form } from './form';

export type By = 'where' | 'nodes' | 'group' | 'query' | 'all';

export interface Chosen {
  targets: JobTargets;
  words: string[]; // of the command line
  some: boolean;
}

/** The nodes that an address names: what is chosen for an order can be sent to a colleague. */
export function chosenIn(search: Form): Chosen {
  const by = byOf(search);
  const nodes = listed(search.nodes ?? '');
  const exclude = listed(search.exclude ?? '');
  const left = { exclude: exclude.length > 0 ? exclude : undefined };
  const without = exclude.length > 0 ? ['--exclude', exclude.join(',')] : [];
  const of: Record<By, Chosen> = {
    where: {
      targets: { query: search.where, ...left },
      words: ['--where', search.where ?? ''],
      some: Boolean(search.where),
    },
    nodes: { targets: { nodes, ...left }, words: ['--targets', nodes.join(',')], some: nodes.length > 0 },
    group: {
      targets: { group: search.group, ...left },
      words: ['--group', search.group ?? ''],
      some: Boolean(search.group),
    },
    query: {
      targets: { query: search.query, ...left },
      words: ['--query', search.query ?? ''],
      some: Boolean(search.query),
    },
    all: { targets: { all: true, ...left }, words: ['--all'], some: true },
  };
  const chosen = of[by];
  return { ...chosen, words: chosen.some ? [...chosen.words, ...without] : ['--where', 'CONDITION'] };
}

function byOf(search: Form): By {
  const by = search.by;
  if (by === 'nodes' || by === 'group' || by === 'all' || by === 'where' || by === 'query') return by;
  return search.group && !search.where ? 'group' : search.nodes && !search.where ? 'nodes' : 'where';
}

const kinds = [
  { value: 'where', label: 'Condition' },
  { value: 'nodes', label: 'Names' },
  { value: 'group', label: 'Group' },
  { value: 'query', label: 'Query' },
  { value: 'all', label: 'All' },
];

/** What an address says of nodes, for a link that takes it along. */
export function targetsOf({ by, where, nodes, group, query, exclude }: Form) {
  return { by, where, nodes, group, query, exclude };
}

/** The part of a form that says which nodes. */
export function TargetFields({ form: search, set: change }: { form: Form; set: (change: Form) => void }) {
  const { session } = useSession();
  const by = byOf(search);
  const groups = useAsk('group.list', {}, { enabled: by === 'group' && mayDo(session, 'group:read') });
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label="Which nodes"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={kinds}
        value={by}
        onChange={(v) => change({ by: v === 'where' ? '' : v })}
      />
      {by === 'where' && (
        <TextInput
          label="Condition"
          placeholder={'facts.os.family = "Debian" and certname ~ "^web-"'}
          classNames={{ input: 'mono' }}
          value={search.where ?? ''}
          onChange={(e) => change({ where: e.currentTarget.value })}
        />
      )}
      {by === 'nodes' && (
        <Lines
          label="Names"
          description="With spaces, commas or line ends between them"
          rows={[1, 8]}
          value={search.nodes ?? ''}
          set={(text) => change({ nodes: text })}
        />
      )}
      {by === 'group' &&
        (mayDo(session, 'group:read') ? (
          <Choice
            label="Group"
            any="No group"
            placeholder="one of the groups"
            data={(groups.data?.items ?? []).map((g) => g.name)}
            value={search.group}
            set={(group) => change({ group })}
          />
        ) : (
          <TextInput
            label="Group"
            value={search.group ?? ''}
            onChange={(e) => change({ group: e.currentTarget.value })}
          />
        ))}
      {by === 'query' && (
        <Lines
          label="Query"
          description="In PQL; it answers with the column certname"
          rows={[1, 8]}
          value={search.query ?? ''}
          set={(text) => change({ query: text })}
        />
      )}
      {by === 'all' && <Text size="sm">Every active node.</Text>}
      {by !== 'nodes' && (
        <TextInput
          label="But not"
          description="Names with commas between them"
          classNames={{ input: 'mono' }}
          value={search.exclude ?? ''}
          onChange={(e) => change({ exclude: e.currentTarget.value })}
        />
      )}
    </Stack>
  );
}
