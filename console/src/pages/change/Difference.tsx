import type { ParameterDifference, ResourceDifference } from '../../api/client';
import { Text } from '../../ui/kit';
import { Place } from '../../ui/parts';
import { many, visible } from '../../ui/words';

const signs: Record<string, string> = { added: '+', removed: '−', changed: '~', reordered: '~', error: '!' };

/** What stands before a change. */
export function signOf(change: string): string {
  return signs[change] ?? '!';
}

function valueText(value: unknown): string {
  return visible(typeof value === 'string' ? value : JSON.stringify(value, null, 1));
}

/** A unified diff, line by line. */
export function DiffText({ text }: { text: string }) {
  return (
    <pre className="diff">
      {text
        .replace(/\n$/, '')
        .split('\n')
        .map((line, i) => (
          <span key={i} data-line={line.startsWith('@@') ? '@' : line[0]}>
            {visible(line)}
            {'\n'}
          </span>
        ))}
    </pre>
  );
}

function Parameter({ p }: { p: ParameterDifference }) {
  const name = `${p.name}${p.path ?? ''}`;
  const changes = p.change === 'changed' || p.change === 'reordered';
  return (
    <div className="parameter">
      <span className="mono">
        {signOf(p.change)} {visible(name)}
      </span>
      {p.hidden ? (
        <Text size="sm" c="dimmed">
          {p.change} (a secret, not shown)
        </Text>
      ) : p.text ? (
        <DiffText text={p.text} />
      ) : p.binary ? (
        <Text size="sm" c="dimmed">
          {p.change} (no text): {p.old_digest ?? 'nothing'} → {p.new_digest ?? 'nothing'}
        </Text>
      ) : (
        <pre className="diff">
          {changes || p.change === 'removed' ? (
            <span data-line="-">
              - {valueText(p.old)}
              {'\n'}
            </span>
          ) : null}
          {changes || p.change === 'added' ? (
            <span data-line="+">
              + {valueText(p.new)}
              {'\n'}
            </span>
          ) : null}
        </pre>
      )}
      {p.note && (
        <Text size="sm" c="dimmed">
          {visible(p.note)}
        </Text>
      )}
    </div>
  );
}

/** How a resource differs: each parameter, texts as diffs. */
export function Differing({ resource }: { resource: ResourceDifference }) {
  return (
    <div>
      <Text size="sm" c="dimmed" component="div">
        {resource.change} <Place file={resource.file} line={resource.line} />
      </Text>
      {(resource.parameters ?? []).map((p, i) => (
        <Parameter key={i} p={p} />
      ))}
      {(resource.not_listed ?? 0) > 0 && <Text size="sm">and {many(resource.not_listed!, 'place')} more</Text>}
      {(resource.tags_added ?? []).length > 0 && <Text size="sm">tags added: {resource.tags_added!.join(', ')}</Text>}
      {(resource.tags_removed ?? []).length > 0 && (
        <Text size="sm">tags removed: {resource.tags_removed!.join(', ')}</Text>
      )}
    </div>
  );
}
