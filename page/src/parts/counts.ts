import { signal } from '@preact/signals';
import { get } from '../api';
import { upTo, useGet } from '../live';
import type { Counts, Page } from '../types';

/** The numbers beside the navigation. The frame asks for them every ten seconds; a screen that changes one asks at once. */
export const counts = signal<Counts | undefined>(undefined);

export async function readCounts() {
  counts.value = await get<Counts>('/api/v1/stats/counts');
}

/** Whether some alert rule is on: without one nobody is told of anything. Undefined while that is not known. */
export function useSomeRule(): boolean | undefined {
  const rules = useGet<Page<{ disabled?: boolean }>>('/api/v1/alerts/rules', { every: 60_000, on: ['change'], always: true, read: upTo(1000) });
  return rules.data && rules.data.items.some((r) => !r.disabled);
}
