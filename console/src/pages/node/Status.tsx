import type { FailedResource, NodeReasons, SkippedResource } from '../../api/client';
import { useAsk } from '../../data/query';
import { Link, nodeAddress, useSearch } from '../../routes/router';
import { Group, SegmentedControl, Stack, Text, Title } from '../../ui/kit';
import { Coming, Empty, Failure, State, Time } from '../../ui/parts';
import { many, visible } from '../../ui/words';
import { CodeAt } from '../change/CodeAt';
import { Picture } from './Picture';

/** Why the node is red: what failed first, what was skipped for it, and when it was well. */
export default function Status({ name }: { name: string }) {
  const asked = useAsk('node.why', { name });
  const node = useAsk('node.show', { name });
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  const why = asked.data;
  if (!why.report && !why.compile_error) {
    return (
      <Empty title="Puppet has not reported from this node">
        <Text size="sm">Its status comes with the report of its first run.</Text>
      </Empty>
    );
  }
  return (
    <div className="page-scroll">
      <Stack gap="md">
        {why.compile_error && <Broken error={why.compile_error} environment={node.data?.environment} />}
        {why.report?.status === 'failed' ? <Red why={why} /> : why.report && <Calm why={why} />}
        {why.last_good && <Good why={why} />}
      </Stack>
    </div>
  );
}

function Broken({ error, environment }: { error: NonNullable<NodeReasons['compile_error']>; environment?: string }) {
  return (
    <section className="card bad-card" aria-labelledby="broken">
      <Title order={2} id="broken">
        Its catalog does not compile
      </Title>
      <pre className="output">{visible(error.message ?? '')}</pre>
      <CodeAt environment={environment} version={error.version} file={error.file} line={error.line} opened />
      <Text size="sm" c="dimmed" mt={6}>
        version <span className="mono">{error.version?.slice(0, 12)}</span>, <Time at={error.at} />
      </Text>
    </section>
  );
}

function Red({ why }: { why: NodeReasons }) {
  const [search, change] = useSearch();
  const drawn = search.view === 'graph' || search.view === 'table';
  const failed = why.failed ?? [];
  const skipped = why.skipped ?? [];
  const below = new Map<string, SkippedResource[]>();
  for (const s of skipped) {
    const key = s.because ?? '';
    below.set(key, [...(below.get(key) ?? []), s]);
  }
  const [first, ...rest] = failed;
  const code = { environment: why.report?.environment, version: why.report?.version };
  return (
    <section className="card bad-card" aria-labelledby="red">
      <Group justify="space-between" mb="xs">
        <Title order={2} id="red">
          Why it is red
        </Title>
        <Text size="sm">
          {many(why.failed_count, 'resource')} failed, {why.skipped_count} skipped,{' '}
          <Link to={nodeAddress(why.node)} search={{ tab: 'runs', report: why.report?.id }}>
            <Time at={why.report?.received_at} />
          </Link>
        </Text>
      </Group>
      {(why.log ?? []).map((line, i) => (
        <div key={i}>
          <pre className="output">{visible(line.message)}</pre>
          <CodeAt {...code} file={line.file} line={line.line} opened={failed.length === 0 && i === 0} />
        </div>
      ))}
      {first && <Failed failure={first} below={drawn ? new Map() : below} code={code} opened />}
      {failed.length > 0 && (
        <SegmentedControl
          aria-label="How it is shown"
          size="xs"
          my="xs"
          data={[
            { value: 'tree', label: 'Tree' },
            { value: 'graph', label: 'Graph' },
            { value: 'table', label: 'Table' },
          ]}
          value={drawn ? search.view! : 'tree'}
          onChange={(view) => change({ view: view === 'tree' ? '' : view, open: '', near: '', box: '' })}
        />
      )}
      {drawn && <Picture name={why.node} show="failed" table={search.view === 'table'} {...code} />}
      {!drawn && rest.length > 0 && (
        <>
          <Title order={3} fz="sm" mt="md" mb={4}>
            Then
          </Title>
          <Stack gap="sm">
            {rest.map((f) => (
              <Failed key={f.resource} failure={f} below={below} code={code} />
            ))}
          </Stack>
        </>
      )}
      {!drawn && (below.get('') ?? []).length > 0 && (
        <>
          <Title order={3} fz="sm" mt="md">
            Skipped; the catalog that is known does not say for which one
          </Title>
          <Tree because="" below={below} code={code} />
        </>
      )}
      {!drawn && why.skipped_count > skipped.length && (
        <Text size="sm" mt="xs">
          and {why.skipped_count - skipped.length} more
        </Text>
      )}
      {!drawn && why.other_catalog && (
        <Text size="sm" c="dimmed" mt="xs">
          The node has another catalog by now: what waited for what is taken from that one.
        </Text>
      )}
    </section>
  );
}

interface Version {
  environment?: string;
  version?: string;
}

function Failed({
  failure,
  below,
  code,
  opened,
}: {
  failure: FailedResource;
  below: Map<string, SkippedResource[]>;
  code: Version;
  opened?: boolean;
}) {
  return (
    <div>
      <Group gap="xs">
        <State of="failed" />
        <Text fw={600} span>
          {visible(failure.resource)}
        </Text>
      </Group>
      <pre className="output">{visible(failure.message)}</pre>
      <CodeAt {...code} file={failure.file} line={failure.line} opened={opened} />
      <Tree because={failure.resource} below={below} code={code} />
    </div>
  );
}

/** What was skipped because of a resource, and because of that in turn. */
function Tree({
  because,
  below,
  code,
  depth = 0,
}: {
  because: string;
  below: Map<string, SkippedResource[]>;
  code: Version;
  depth?: number;
}) {
  const here = below.get(because) ?? [];
  if (here.length === 0 || depth > 30) return null;
  return (
    <ul className="because" aria-label={because ? `Skipped because of ${because}` : 'Skipped'}>
      {here.map((s) => (
        <li key={s.resource}>
          <Group gap="xs">
            <State of="skipped" />
            <span>{visible(s.resource)}</span>
          </Group>
          <CodeAt {...code} file={s.file} line={s.line} />
          {s.resource !== because && <Tree because={s.resource} below={below} code={code} depth={depth + 1} />}
        </li>
      ))}
    </ul>
  );
}

function Calm({ why }: { why: NodeReasons }) {
  const c = why.report!.counts;
  return (
    <section className="card" aria-labelledby="calm">
      <Title order={2} id="calm" mb="xs">
        The last run did not fail
      </Title>
      <dl className="pairs">
        <dt>Reported</dt>
        <dd>
          <Time at={why.report!.received_at} />
        </dd>
        <dt>Resources</dt>
        <dd>
          {c.resources}: {c.changed} changed, {c.corrective} of them corrective, {c.unchanged} unchanged, {c.noop} noop
        </dd>
        <dt>Version</dt>
        <dd className="mono">{why.report!.version}</dd>
        <dt>Puppet</dt>
        <dd>{why.report!.puppet_version}</dd>
      </dl>
    </section>
  );
}

function Good({ why }: { why: NodeReasons }) {
  const good = why.last_good!;
  return (
    <section className="card" aria-labelledby="good">
      <Title order={2} id="good" mb="xs">
        The last run that did not fail
      </Title>
      <dl className="pairs">
        <dt>Reported</dt>
        <dd>
          <Link to={nodeAddress(why.node)} search={{ tab: 'runs', report: good.id }}>
            <Time at={good.received_at} />
          </Link>{' '}
          <State of={good.status} />
        </dd>
        <dt>Version then</dt>
        <dd className="mono">{good.version}</dd>
        {why.report && (
          <>
            <dt>Version now</dt>
            <dd className="mono">
              {why.report.version}
              {why.report.version === good.version && (
                <Text span size="sm" c="dimmed" ff="text">
                  {' '}
                  the same: the code is not what changed
                </Text>
              )}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}
