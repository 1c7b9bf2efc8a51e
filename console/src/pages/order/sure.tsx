import { useState, type ReactNode } from 'react';
import { TextInput } from '../../ui/kit';

/** Above so many nodes the person types the number. */
const threshold = 50;

/** Has somebody who does something to many nodes type their number. */
export function useSure(nodes: number): { sure: boolean; field: ReactNode } {
  const [typed, setTyped] = useState('');
  if (nodes <= threshold) return { sure: true, field: null };
  return {
    sure: typed === String(nodes),
    field: (
      <TextInput
        label={`Type the number of nodes, ${nodes}`}
        value={typed}
        onChange={(e) => setTyped(e.currentTarget.value.trim())}
      />
    ),
  };
}
