import { get, query } from '../api';
import { t, type Text } from '../i18n';
import { stamp, weekday } from '../time';
import type { Mark } from '../types';

// What the active jobs are due at in a range that lies ahead, as the server works it out for all of them at once.

export interface Due { job_id: string; job: string; app: string; due: string; timezone?: string; mark?: Mark; moved_from?: string }
export interface Frequent { job_id: string; job: string; app: string; count: number }
interface Left { frequent?: Frequent[]; frequent_count?: number; truncated?: boolean }
export interface Ahead extends Left { items: Due[]; next?: string }
export interface Counts extends Left { from: string; to: string; jobs: number; total: number; counts: number[]; uncounted?: number }

const iso = (at: number) => new Date(at).toISOString();

/** What is odd about a due time. */
export const marks: Record<NonNullable<Due['mark']>, Text> = { gap: 'clock jumps forward', repeat: 'hour repeats', makeup: 'make-up day', moved: 'moved' };

/** What is odd about a due time, with the day that it moved from. */
export const markText = (d: Pick<Due, 'mark' | 'moved_from'>, zone?: string) =>
  (d.moved_from ? t('moved from {day}', { day: `${weekday(d.moved_from, zone)} ${stamp(d.moved_from, zone).slice(0, 10)}` }) : d.mark ? t(marks[d.mark]) : '');

/** A page of due times. Jobs with more than `most` of them stand in frequent instead. */
export const dueTimes = (o: { from: number; to: number; most?: number; limit?: number; app?: string; cursor?: string }, signal?: AbortSignal) =>
  get<Ahead>(`/api/v1/upcoming${query({ from: iso(o.from), to: iso(o.to), most: o.most, limit: o.limit ?? 500, app: o.app, cursor: o.cursor })}`, signal);

/** How many due times each minute of a range has. */
export const countMinutes = (o: { from: number; to: number; most?: number; app?: string }, signal?: AbortSignal) =>
  get<Counts>(`/api/v1/upcoming/counts${query({ from: iso(o.from), to: iso(o.to), step: 'minute', most: o.most, app: o.app })}`, signal);
