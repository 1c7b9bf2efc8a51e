import { Group, Select, Text, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';

type Choices = string[] | { value: string; label: string }[];

/** One of several values, or any of them: then the value is empty. */
export function Choice(props: {
  label: string;
  any: string; // what the button is called that takes the choice back
  data: Choices;
  value?: string;
  set: (value: string) => void;
  width?: number;
  description?: string;
  placeholder?: string;
}) {
  return (
    <Select
      label={props.label}
      description={props.description}
      w={props.width}
      placeholder={props.placeholder ?? 'any'}
      clearable
      clearButtonProps={{ 'aria-label': props.any }}
      data={props.data}
      value={props.value || null}
      onChange={(value) => props.set(value ?? '')}
    />
  );
}

/** A text that narrows a list while it is typed, and beside it what the list is. */
export function Find(props: {
  placeholder: string;
  value?: string;
  set: (value: string) => void;
  children: ReactNode;
}) {
  return (
    <Group gap="md" align="flex-end">
      <TextInput
        data-filter
        label="Find"
        placeholder={props.placeholder}
        style={{ flex: '1 1 220px' }}
        value={props.value ?? ''}
        onChange={(e) => props.set(e.currentTarget.value)}
      />
      <Text component="output" size="sm" pb={8}>
        {props.children}
      </Text>
    </Group>
  );
}
