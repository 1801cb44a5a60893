import { query } from '../api';
import { t, type Text } from '../i18n';
import type { JobSlots, Outcome, Slot } from '../types';
import { Badge, outcomeText, toneOf, type Tone } from './basic';

// Due times and what became of them.

type Other = Exclude<Slot['state'], Outcome | 'running'>;
const otherText: Record<Other, Text> = { waiting: 'waiting', paused: 'paused', ahead: 'planned', hole: 'no record' };
const otherTone: Record<Other, Tone> = { waiting: 'warn', paused: 'mute', ahead: 'mute', hole: 'warn' };
const isOther = (s: Slot['state']): s is Other => s in otherText;

export const slotText = (s: Slot['state']) => t(isOther(s) ? otherText[s] : outcomeText[s]);
export const slotTone = (s: Slot['state']): Tone => (isOther(s) ? otherTone[s] : toneOf(s));
export const SlotBadge = ({ state }: { state: Slot['state'] }) => <Badge tone={slotTone(state)}>{slotText(state)}</Badge>;

/** Whether a due time has succeeded, if not by its schedule then when it was run again. */
export const hasSucceeded = (s: Slot) => s.state === 'succeeded' || s.again === 'succeeded';

/** Where the due times of a job in a range are asked for. A range of more than 31 days is refused. */
export const slotsPath = (job: string, from: string, to: string, most: number) =>
  `/api/v1/stats/slots${query({ job_id: job, from, to, most, parts: 48 })}`;

export interface OfJob { items: JobSlots[]; now: string }
