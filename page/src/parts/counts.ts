import { signal } from '@preact/signals';
import { get } from '../api';
import type { Counts } from '../types';

/** The numbers beside the navigation. The frame asks for them every ten seconds; a screen that changes one asks at once. */
export const counts = signal<Counts | undefined>(undefined);

export async function readCounts() {
  counts.value = await get<Counts>('/api/v1/stats/counts');
}
