import { milliseconds, ms } from '../time';

/** What the server writes into a definition that says nothing of it. */
const usual: Record<string, unknown> = {
  overlap: 'skip', queue: 10, 'misfire.policy': 'latest', 'misfire.max_age': '1h', 'misfire.max_count': 100, on_lost: 'fail',
  'retry.backoff': '10s', 'retry.factor': 1, 'retry.max_backoff': '1h', 'retry.on': ['failed', 'timed_out'],
  'http.expect': ['2xx'], 'http.body_limit': 65536,
};

interface Of { every?: string; http?: { body?: string }; created?: string }

/** Whether a definition may have said nothing of a field: its value is what the server would write. */
export function isUsual(path: string, value: unknown, of: Of): boolean {
  if (path === 'start') return !!of.every && (!of.created || Math.abs(ms(String(value)) - (milliseconds(of.every) ?? 0) - ms(of.created)) < 5000);
  if (path === 'timezone') return value === 'UTC';
  if (path === 'timeout') return !!of.http && value === '5m';
  if (path === 'http.method') return value === (of.http?.body ? 'POST' : 'GET');
  return path in usual && JSON.stringify(value) === JSON.stringify(usual[path]);
}
