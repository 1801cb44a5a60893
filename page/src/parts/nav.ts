import type { Text } from '../i18n';
import type { Counts } from '../types';
import type { IconName } from './icon';

/** A number beside an entry of the navigation. */
interface NavBadge { n: number; atLeast?: boolean; tone: 'bad' | 'busy'; text: Text }
export interface NavItem { to: string; text: Text; icon: IconName; key: string; badge?: (c: Counts) => NavBadge }

/** The entries of the navigation; key is the letter that opens one after g. */
export const nav: NavItem[] = [
  { to: '/', text: 'Overview', icon: 'heat', key: 'o' },
  { to: '/jobs', text: 'Jobs', icon: 'jobs', key: 'j', badge: (c) => ({ n: c.failing_jobs, atLeast: c.at_least, tone: 'bad', text: '{n} jobs are failing' }) },
  { to: '/runs', text: 'Runs', icon: 'runs', key: 'r', badge: (c) => ({ n: c.running, tone: 'busy', text: '{n} running' }) },
  { to: '/upcoming', text: 'Upcoming', icon: 'upcoming', key: 'u' },
  { to: '/timeline', text: 'Timeline', icon: 'timeline', key: 't' },
  { to: '/alerts', text: 'Alerts', icon: 'bell', key: 'a', badge: (c) => ({ n: c.firing_alerts, tone: 'bad', text: '{n} active alerts' }) },
  { to: '/cluster', text: 'Cluster', icon: 'cluster', key: 'c', badge: (c) => ({ n: c.nodes_gone, tone: 'bad', text: '{n} nodes gone' }) },
  { to: '/audit', text: 'Audit', icon: 'activity', key: 'l' },
  { to: '/settings', text: 'Settings', icon: 'settings', key: 's' },
];
