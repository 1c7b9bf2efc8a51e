import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { logOut, Refusal, whenEnded, whoAmI, type Session } from '../api/client';
import { useAsk } from './query';

interface Known {
  session?: Session;
  loading: boolean;
  lost: boolean; // there was a session, and it ended by itself
  error?: string;
  again: () => Promise<void>;
  leave: () => Promise<void>;
}

const Context = createContext<Known | null>(null);

/** Knows who is logged in. What is below stays as it is when the session ends: a form survives the next login. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const [session, setSession] = useState<Session>();
  const [loading, setLoading] = useState(true);
  const [lost, setLost] = useState(false);
  const [error, setError] = useState<string>();
  const again = useCallback(
    () =>
      whoAmI()
        .then((found) => {
          setSession((before) => found ?? before);
          setLost((before) => !found && before);
          setError(undefined);
        })
        .catch((cause: unknown) => setError(cause instanceof Refusal ? cause.message : String(cause)))
        .finally(() => setLoading(false)),
    [],
  );
  const leave = useCallback(async () => {
    await logOut();
    window.location.assign('/login');
  }, []);
  useEffect(() => {
    whenEnded(() => setLost(true));
    void again();
  }, [again]);
  useEffect(() => {
    if (!error) return;
    const timer = setInterval(() => void again(), 10_000);
    return () => clearInterval(timer);
  }, [error, again]);
  const known = useMemo(
    () => ({ session, loading, lost, error, again, leave }),
    [session, loading, lost, error, again, leave],
  );
  return <Context.Provider value={known}>{children}</Context.Provider>;
}

export function useSession(): Known {
  const known = useContext(Context);
  if (!known) throw new Error('no session is known here');
  return known;
}

/** Says whether a session may do something, at least to some objects: the server judges each one. */
export function mayDo(session: Session | undefined, permission: string): boolean {
  return (session?.grants ?? []).some((g) => g.permission === '*' || g.permission === permission);
}

/** Says whether who is logged in may do something, and if not, which role is missing. */
export function useMay(permission: string): { may: boolean; why: string } {
  const { session } = useSession();
  const may = mayDo(session, permission);
  const roles = useAsk('role.list', {}, { enabled: !may && mayDo(session, 'role:read') });
  if (may) return { may, why: '' };
  const givers = (roles.data?.items ?? [])
    .filter((role) => (role.grants ?? []).some((g) => g.permission === '*' || g.permission === permission))
    .map((role) => role.name);
  const who = givers.length > 0 ? ` Roles that have it: ${givers.join(', ')}.` : '';
  return { may, why: `You need the permission ${permission}.${who} Ask an administrator.` };
}
