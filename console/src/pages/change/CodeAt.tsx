import { useState } from 'react';
import { useAsk } from '../../data/query';
import { mayDo, useSession } from '../../data/session';
import { Text } from '../../ui/kit';
import { CommandLine } from '../../ui/parts';
import { commandLine, short, visible } from '../../ui/words';

/** The files that the server shows lines of: what errors name, and no data. */
const readable = /\.(pp|epp|erb|rb)$/;

/** A place in code: where it is, and the lines around it in the version that is meant. */
export function CodeAt(props: {
  environment?: string;
  version?: string;
  file?: string;
  line?: number;
  opened?: boolean;
}) {
  const { session } = useSession();
  const [open, setOpen] = useState(props.opened ?? false);
  const { environment, version, file, line } = props;
  if (!file) return null;
  const place = line ? `${file}:${line}` : file;
  const shows = Boolean(environment && version && line && readable.test(file) && mayDo(session, 'code:read'));
  return (
    <div>
      {shows ? (
        <button type="button" className="as-link mono" aria-expanded={open} onClick={() => setOpen(!open)}>
          {place}
        </button>
      ) : (
        <Text span size="sm" className="mono" c="dimmed">
          {place}
        </Text>
      )}
      {shows && open && <Lines environment={environment!} version={version!} file={file} line={line!} />}
    </div>
  );
}

function Lines(props: { environment: string; version: string; file: string; line: number }) {
  const asked = useAsk('version.lines', props);
  if (asked.error) {
    return (
      <Text size="sm" c="dimmed">
        The code cannot be shown: {visible(asked.error.message)}
      </Text>
    );
  }
  if (!asked.data) return null;
  const { from, lines, line, file, environment, version } = asked.data;
  return (
    <figure className="code" aria-label={`Code around ${file}:${line}`}>
      <pre>
        {(lines ?? []).map((text, i) => (
          <span key={i} data-here={from + i === line}>
            <span className="code-number">{from + i}</span>
            {visible(text)}
            {'\n'}
          </span>
        ))}
      </pre>
      <figcaption>
        <Text size="xs" c="dimmed" mb={4}>
          as it is in version {short(version)} of {environment}
        </Text>
        <CommandLine
          line={commandLine('code', 'show', environment, `${file}:${line}`, '--version', version.slice(0, 12))}
        />
      </figcaption>
    </figure>
  );
}
