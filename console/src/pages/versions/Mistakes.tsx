import type { CodeStatus } from '../../api/client';
import { Link, nodeAddress } from '../../routes/router';
import { Stack, Text, Title } from '../../ui/kit';
import { Empty, State, Time } from '../../ui/parts';
import { count, many, visible } from '../../ui/words';
import { CodeAt } from '../change/CodeAt';

/** What is wrong in the current version: what does not compile, and what its check found, with file and line. */
export default function Mistakes({ s }: { s: CodeStatus }) {
  const errors = s.errors ?? [];
  const findings = s.check?.findings ?? [];
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="Mistakes" tabIndex={0}>
      <Stack gap="md">
        {errors.length > 0 && (
          <section className="card bad-card" aria-labelledby="errors">
            <Title order={2} id="errors" mb="xs">
              Does not compile
            </Title>
            <Stack gap="sm">
              {errors.map((e, i) => (
                <div key={i}>
                  <pre className="output">{visible(e.message)}</pre>
                  <CodeAt
                    environment={s.environment}
                    version={s.version}
                    file={e.file}
                    line={e.line}
                    opened={i === 0}
                  />
                  <Text size="sm" component="div">
                    {many(e.nodes, 'node')}:{' '}
                    {(e.names ?? []).map((name, n) => (
                      <span key={name}>
                        {n > 0 && ', '}
                        <Link to={nodeAddress(name)}>{name}</Link>
                      </span>
                    ))}
                    {e.nodes > (e.names ?? []).length && ' …'}
                  </Text>
                </div>
              ))}
            </Stack>
          </section>
        )}
        {s.check ? (
          <section className="card" aria-labelledby="check">
            <Title order={2} id="check" mb={4}>
              The check before the deploy
            </Title>
            <Text size="sm" mb="xs">
              <Time at={s.check.at} />: {many(s.check.files, 'file')} read,{' '}
              {many(s.check.compiled + (s.check.more ?? 0), 'node')} compiled for. {many(s.check.mistakes, 'mistake')},{' '}
              {many(s.check.warnings, 'warning')}
              {s.check.warnings > 0 && `, ${count(s.check.new_warnings)} of them new`}.
              {s.check.forced && ' Somebody deployed it in spite of that.'}
            </Text>
            {findings.length > 0 && (
              <ul className="changes" aria-label="Findings">
                {findings.map((f, i) => (
                  <li key={i} data-bad={f.level === 'mistake'}>
                    <State of={f.level}>{f.new ? `new ${f.level}` : f.level}</State>{' '}
                    <span title={(f.nodes ?? []).join(', ')}>{visible(f.message)}</span>
                    <CodeAt environment={s.environment} version={s.check!.version} file={f.file} line={f.line} />
                  </li>
                ))}
              </ul>
            )}
            {(s.check.cut ?? 0) > 0 && <Text size="sm">and {count(s.check.cut!)} more</Text>}
          </section>
        ) : (
          errors.length === 0 && (
            <Empty title="Nothing is known to be wrong">
              <Text size="sm">The version was deployed without a check, and it compiles for the nodes.</Text>
            </Empty>
          )
        )}
      </Stack>
    </section>
  );
}
