import { t, type Text } from '../i18n';
import type { Node } from '../types';
import type { Tone } from './basic';

const states: Record<Node['state'], { text: Text; tone: Tone }> = {
  ready: { text: 'ready', tone: 'good' }, cordoning: { text: 'cordoning', tone: 'warn' }, cordoned: { text: 'cordoned', tone: 'warn' }, draining: { text: 'draining', tone: 'warn' },
  drained: { text: 'drained', tone: 'mute' }, stopping: { text: 'stopping', tone: 'warn' }, silent: { text: 'not responding', tone: 'bad' }, absent: { text: 'offline', tone: 'mute' },
  gone: { text: 'gone', tone: 'bad' }, left: { text: 'stopped', tone: 'mute' },
};

/** What a badge shows of a node. */
export function nodeState(n: Node): { tone: Tone; children: string } {
  const s = states[n.state] ?? states.silent;
  return { tone: s.tone, children: t(s.text) };
}
