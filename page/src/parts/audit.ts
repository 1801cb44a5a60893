// What the audit says was done, and to what, in words. What is not here is shown as the API calls it.
import { type Text } from '../i18n';

export const actions: Record<string, Text> = {
  create: 'Created', update: 'Edited', rollback: 'Rolled back', delete: 'Deleted', apply: 'Applied', test: 'Tested',
  pause: 'Paused', resume: 'Resumed', run: 'Started manually', kill: 'Killed', backfill: 'Backfilled', cancel: 'Cancelled',
  cordon: 'Cordoned', drain: 'Drained', uncordon: 'Uncordoned', disable: 'Disabled', enable: 'Enabled',
  rotate: 'Rotated', revoke: 'Revoked', sign_in: 'Signed in', sign_out: 'Signed out', refuse: 'Refused',
  reap: 'Declared dead', leave: 'Stopped', fence: 'Fenced', reset: 'Reset', break: 'Became broken', void: 'Not confirmed',
};
export const kinds: Record<string, Text> = {
  job: 'job', app: 'app', cluster: 'cluster', node: 'node', group: 'group', calendar: 'calendar', handler: 'handler', retention: 'retention', folder: 'folder', limits: 'limits',
  secret: 'secret', token: 'token', login: 'sign-in', session: 'session', request: 'request', alert_rule: 'alert rule', alert_channel: 'alert channel', alert_silence: 'silence',
};
