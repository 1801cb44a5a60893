// What the API answers, as far as the page shows it. /openapi.json is the whole of it.

export type Role = 'viewer' | 'operator' | 'admin';
export type Outcome = 'succeeded' | 'failed' | 'timed_out' | 'killed' | 'lost' | 'skipped' | 'missed' | 'superseded';
export type Status = 'active' | 'paused' | 'finished' | 'error';

export interface Page<T> { items: T[]; next?: string }
export interface Me { name: string; kind: string; role: Role; apps?: string[]; grants: { role: Role; apps?: string[] }[]; expires?: string }
export interface Login { id: string; who: string; kind: 'token' | 'oidc'; grants: { role: Role; apps?: string[] }[]; since: string; from?: string; until: string; last_used?: string; last_used_from?: string; checked?: string; check_at?: string; current: boolean }
export interface Pause { scope: 'job' | 'app' | 'cluster'; app?: string; by?: string; reason?: string; since: string; until?: string; ended?: string; jobs?: number }
export interface Wait { due: string; for: 'job' | 'group' | 'node' | 'slot'; group?: string; selector?: string; why: string }

export interface Job {
  id: string; app: string; name: string; description: string; owner: string; labels: Record<string, string>;
  schedule?: string; schedules?: string[]; every?: string; at?: string; timezone?: string; start?: string; end?: string;
  max_fires?: number; jitter?: string; calendars?: string[];
  command?: string; http?: { method?: string; url: string }; handler?: string; payload?: string;
  timeout?: string; selector?: string; overlap: string; queue?: number; group?: string; priority?: number;
  misfire: Record<string, unknown>; retry?: Record<string, unknown>; on_lost: string;
  paused: boolean; pause?: Pause; status: Status; error?: string; version: number;
  next_due?: string; last_due?: string; created: string; updated: string; warnings?: Sentence[]; waiting?: Wait[];
  [field: string]: unknown;
}

/** What the server says of a field or a definition: the message is English, code and values are for programs. */
export interface Sentence { message: string; code: string; values?: string[] }

export interface Run {
  id: string; job_id: string; job: string; app: string; due: string; until?: string; count?: number; started?: string; ended?: string;
  lateness_ms?: number; attempt: number; final: boolean; state: 'running' | 'ended'; outcome?: Outcome; reason?: string; reason_code?: string;
  exit_code?: number; signal?: string; node: string; session: string; trigger: 'schedule' | 'manual' | 'backfill';
  request?: string; output_bytes: number; output_truncated: boolean; output_removed?: boolean;
}
export interface Output { id: string; state: 'running' | 'ended'; outcome?: Outcome; from: number; next: number; bytes: number; text: string }
export interface DueTime { due: string; mark?: 'gap' | 'repeat' | 'makeup' }
export interface Preview { words: string; next: DueTime[]; warnings?: Sentence[] }
export interface Explanation { at: string; due_time?: string; due: boolean; cause: string; answer: string; runs?: Run[]; before?: DueTime; after?: DueTime }
export interface Change { field: string; was?: unknown; becomes?: unknown }
export interface VersionItem { version: number; at: string; who?: string; current: boolean; changed: string[]; error?: string }
export interface Backfill {
  id: string; job_id: string; from: string; to: string; parallel: number; missing: boolean; state: 'running' | 'done' | 'cancelled';
  total: number; planned: number; left_out: number; ended: number; outcomes: Record<string, number>; who?: string; created: string; updated: string;
}
export interface AppliedObject { id?: string; app?: string; name: string; action: 'created' | 'updated' | 'unchanged' | 'deleted'; version?: number; changes?: Change[]; warnings?: Sentence[] }
export type Applied = { dry_run: boolean; changed: number } & Record<'groups' | 'calendars' | 'channels' | 'rules' | 'retention' | 'pauses' | 'jobs', AppliedObject[]>;
export interface CrontabNote extends Sentence { line?: number; field?: string }
export interface Crontab { jobs: { line: number; text: string; words: string; notes?: Sentence[]; job: Record<string, unknown> }[]; notes?: CrontabNote[]; refused?: CrontabNote[] }

export interface Session {
  id: string; node: string; address: string; pid: number; version: string; started: string; beat_age_ms: number; draining: boolean;
  prepared: number; executing: number; slots: number; clock_offset_ms: number;
}
export interface Cluster { now: string; node: string; version: string; server: string; schema: number; session_expiry?: string; sessions: Session[] }
export interface NodeView {
  name: string; state: string; labels: Record<string, string>; handlers: string[]; cordoned: boolean; draining: boolean; drained: boolean;
  reason?: string; by?: string; since?: string; prepared: number; executing: number; slots: number;
  sessions: { id: string; address?: string; version?: string; started: string; beat_age_ms: number }[];
}
export interface AuditEntry {
  id: string; at: string; who: string; origin?: string; action: string; kind: string; job_id?: string; app?: string; name?: string; reason?: string;
  was?: unknown; became?: unknown;
}
export interface Group { version?: number; name: string; slots: number; executing: number; waiting: number; jobs: number; updated: string }
export interface CalendarItem { name: string; timezone?: string; excludes: number; includes: number; jobs: number; updated: string }
export interface DayState { date: string; weekday: string; state: 'open' | 'closed' | 'makeup'; as?: string; hours?: string[]; why?: string }
export interface Secret { version?: number; name: string; app?: string; key_state: string; updated: string; updated_by: string }
export interface Token { id: string; name: string; role: Role; apps?: string[]; state: string; created: string; created_by: string; expires?: string; last_used?: string; last_used_from?: string; token?: string }
