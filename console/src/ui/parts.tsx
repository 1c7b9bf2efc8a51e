import {
  Alert,
  Button,
  Group,
  Modal,
  Skeleton,
  Stack,
  Text,
  Textarea,
  Title,
  Tooltip,
  type ButtonProps,
  type TextareaProps,
} from '@mantine/core';
import {
  IconAlertTriangle,
  IconCheck,
  IconCircle,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconCopy,
} from '@tabler/icons-react';
import { Fragment, useEffect, useRef, useState, type ReactNode } from 'react';
import type { Refusal } from '../api/client';
import { ago, wordOf, type Tone } from './words';

const icons: Record<Tone, typeof IconCircle> = {
  ok: IconCircleCheck,
  changed: IconCircle,
  warn: IconAlertTriangle,
  bad: IconCircleX,
  calm: IconCircleDashed,
};

/** A state: icon, word and colour. An old one is drawn hollow. */
export function State({ of, old, children }: { of: string; old?: boolean; children?: ReactNode }) {
  const word = wordOf(of);
  const Icon = icons[word.tone];
  return (
    <span className="state" data-tone={word.tone} data-old={old} title={word.means || undefined}>
      <Icon size={14} aria-hidden />
      {children ?? word.text}
    </span>
  );
}

/** A time: how long ago, and exactly when pointed at. */
export function Time({ at }: { at?: string }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 20_000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={new Date(at).toISOString().replace('.000', '')}>
      {ago(at)}
    </time>
  );
}

/** Where something stands in code, short: the whole path when pointed at. */
export function Place({ file, line }: { file?: string; line?: number }) {
  if (!file) return <>–</>;
  const near = file.split('/').slice(-2).join('/');
  return (
    <span className="mono" title={file}>
      {line ? `${near}:${line}` : near}
    </span>
  );
}

/** The command line that does the same, to be copied. */
export function CommandLine({ line }: { line: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(line);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div className="command" data-testid="command">
      <code className="mono">
        {line.split(' ').map((word, i) => (
          <Fragment key={i}>
            {i > 0 && ' '}
            <span>{word}</span>
          </Fragment>
        ))}
      </code>
      <Button
        size="compact-xs"
        variant="subtle"
        leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
        onClick={() => void copy()}
        aria-label={`Copy the command: ${line}`}
      >
        {copied ? 'copied' : 'copy'}
      </Button>
    </div>
  );
}

/** Has the browser save a text as a file. */
export function saveAs(name: string, text: string, type: string) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The head of a page, and what is in it. */
export function Page(props: {
  title: ReactNode;
  name: string;
  above?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${props.name} · Tutti`;
  }, [props.name]);
  return (
    <div className="page">
      <div>
        {props.above}
        <Group justify="space-between" gap="xs">
          <Title order={1}>{props.title}</Title>
          {props.actions && <Group gap="xs">{props.actions}</Group>}
        </Group>
      </div>
      {props.children}
    </div>
  );
}

/** What went wrong, with what to do and the reference to the log. */
export function Failure({ error, again }: { error: Refusal; again?: () => void }) {
  const denied = error.status === 403;
  return (
    <Alert
      color={denied ? 'gray' : 'red'}
      variant="outline"
      title={denied ? 'You may not see this' : 'This did not work'}
      icon={<IconAlertTriangle />}
      role="alert"
    >
      <Stack gap={6} align="flex-start">
        <Text size="sm">{error.message}</Text>
        {error.problem.hint && <Text size="sm">{error.problem.hint}</Text>}
        {error.problem.request_id && (
          <Text size="xs" c="dimmed">
            Request {error.problem.request_id}; the server’s log has it.
          </Text>
        )}
        {again && (
          <Button size="compact-sm" variant="default" onClick={again}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** Nothing is here, and why. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    // An <output> may not hold paragraphs.
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
    <Stack align="center" gap={8} py="xl" px="md" ta="center" role="status">
      <Text fw={600}>{title}</Text>
      <Stack gap={8} align="center" maw={620}>
        {children}
      </Stack>
    </Stack>
  );
}

/** The shape of what is to come; shown only when it takes a while. */
export function Coming({ lines = 6 }: { lines?: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    // An <output> may not hold blocks.
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
    <Stack gap={10} role="status" aria-busy="true" aria-label="Loading">
      {late &&
        Array.from({ length: lines }, (_, i) => <Skeleton key={i} height={26} width={`${96 - ((i * 7) % 30)}%`} />)}
    </Stack>
  );
}

/** A button for an act that needs a permission. Who does not have it is told what is missing. */
export function ActButton({
  may,
  why,
  onClick,
  children,
  ...rest
}: { may: boolean; why: string; onClick: () => void; children: ReactNode } & ButtonProps) {
  const button = (
    <Button
      size="xs"
      {...rest}
      data-disabled={may ? undefined : true}
      aria-disabled={!may}
      aria-description={why || undefined}
      onClick={(e) => (may ? onClick() : e.preventDefault())}
    >
      {children}
    </Button>
  );
  return may ? (
    button
  ) : (
    <Tooltip label={why} multiline maw={340} events={{ hover: true, focus: true, touch: true }}>
      {button}
    </Tooltip>
  );
}

/** A field for lines of names or of code. It has from so many rows to so many, as it is filled. */
export function Lines({
  rows: [least, most],
  set,
  ...rest
}: { rows: [number, number]; set: (text: string) => void } & Omit<TextareaProps, 'rows' | 'onChange'>) {
  return (
    <Textarea
      autosize
      minRows={least}
      maxRows={most}
      classNames={{ input: 'mono' }}
      {...rest}
      onChange={(e) => set(e.currentTarget.value)}
    />
  );
}

/** A question before an act: its form, the command line that does the same, and what went wrong. */
export function ActDialog(props: {
  title: string;
  opened: boolean;
  close: () => void;
  act: () => void;
  word: string;
  busy: boolean;
  error: Refusal | null;
  line: string;
  blocked?: boolean;
  danger?: boolean;
  wide?: boolean;
  children: ReactNode;
}) {
  return (
    <Modal
      opened={props.opened}
      onClose={props.close}
      title={props.title}
      size={props.wide ? 'xl' : undefined}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!props.blocked) props.act();
        }}
      >
        <Stack>
          {props.children}
          {props.error && <Failure error={props.error} />}
          <div>
            <Text size="sm" c="dimmed" mb={4}>
              The same on the command line
            </Text>
            <CommandLine line={props.line} />
          </div>
          <Group justify="flex-end">
            <Button variant="default" onClick={props.close}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={props.busy}
              disabled={props.blocked}
              color={props.danger ? 'red.9' : undefined}
            >
              {props.word}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** Numbers of states as one bar. */
export function Bar({ parts, label }: { parts: { state: string; n: number }[]; label: string }) {
  return (
    // A drawing of several elements is no <img>.
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
    <div className="bar" role="img" aria-label={label}>
      {parts
        .filter((p) => p.n > 0)
        .map((p) => (
          <span key={p.state} className={`tone-${wordOf(p.state).tone}`} style={{ flexGrow: p.n }} />
        ))}
    </div>
  );
}

/** Tells readers of screens what moved, at most every five seconds. */
export function Whisper({ text }: { text: string }) {
  const [told, setTold] = useState('');
  const last = useRef(0);
  useEffect(() => {
    const timer = setTimeout(
      () => {
        last.current = Date.now();
        setTold(text);
      },
      Math.max(0, last.current + 5000 - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div
      aria-live="polite"
      style={{ position: 'absolute', width: 1, height: 1, overflow: 'hidden', clipPath: 'inset(50%)' }}
    >
      {told}
    </div>
  );
}
