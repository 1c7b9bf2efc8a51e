import type { SpreadGroup, SpreadVersion } from '../../api/client';
import { useAsk } from '../../data/query';
import { groupAddress, Link } from '../../routes/router';
import { Text } from '../../ui/kit';
import { Coming, Empty, Failure, State, Time } from '../../ui/parts';
import { count, short, visible } from '../../ui/words';

/** How many nodes of each group have which version: one look says whether a fix is everywhere. */
export default function Spread({ environment }: { environment: string }) {
  const asked = useAsk('version.spread', { environment }, { every: 10_000 });
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  const versions = asked.data.versions ?? [];
  const groups = asked.data.groups ?? [];
  if (groups.length === 0) {
    return (
      <Empty title="No node is in this environment">
        <Text size="sm">Nodes are counted here as soon as they send facts from it.</Text>
      </Empty>
    );
  }
  const others = groups.some((g) => g.other > 0);
  const none = groups.some((g) => g.none > 0);
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="Which nodes have which version" tabIndex={0}>
      <table className="spread">
        <thead>
          <tr>
            <th scope="col">Group</th>
            <th scope="col">Nodes</th>
            {versions.map((v) => (
              <VersionHead key={v.id} v={v} />
            ))}
            {others && <th scope="col">Others</th>}
            {none && (
              <th scope="col" title="They may have no catalog of this environment">
                None
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {groups.map((g) => (
            <tr key={`${g.depth} ${g.group}`}>
              <th scope="row" style={{ paddingLeft: 10 + g.depth * 16 }}>
                <Link to={groupAddress(g.group)}>{visible(g.group)}</Link>
              </th>
              <td>{count(g.nodes)}</td>
              {versions.map((v, i) => (
                <Cell
                  key={v.id}
                  g={g}
                  n={g.counts?.[i] ?? 0}
                  environment={environment}
                  version={v.id}
                  name={short(v.id)}
                  good={Boolean(v.current)}
                />
              ))}
              {others && <td>{count(g.other)}</td>}
              {none && <Cell g={g} n={g.none} environment={environment} version="none" name="no version" />}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function VersionHead({ v }: { v: SpreadVersion }) {
  return (
    <th scope="col" title={v.commit ? `${v.id}, commit ${v.commit}` : v.id}>
      <span className="mono">{short(v.id)}</span>
      <br />
      {v.current ? <State of="current" /> : v.deployed_at ? <Time at={v.deployed_at} /> : 'not deployed'}
    </th>
  );
}

/** A number of nodes, which leads to them; the larger its share of the group, the stronger its colour. */
function Cell(props: {
  g: SpreadGroup;
  n: number;
  environment: string;
  version: string;
  name: string;
  good?: boolean;
}) {
  const { g, n, environment, version } = props;
  if (n === 0) return <td data-zero="true">0</td>;
  const share = Math.ceil((n / g.nodes) * 4);
  return (
    <td data-share={share} data-good={props.good}>
      <Link
        to="/nodes"
        search={{ environment, version, ...(g.depth > 0 ? { group: g.group } : {}) }}
        label={`${n} nodes of ${visible(g.group)} with ${props.name}`}
      >
        {count(n)}
      </Link>
    </td>
  );
}
