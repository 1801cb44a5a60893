import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, mayAnywhere, query } from '../api';
import { choose, lang, t } from '../i18n';
import { following, setFollowing } from '../live';
import { go } from '../router';
import { flipTheme } from '../theme';
import type { Job, Page } from '../types';
import { closeDialog, show } from './basic';
import { Icon, type IconName } from './icon';

interface Choice { icon: IconName; text: string; more?: string; do: () => void }

export const openPalette = () => show(() => <Palette />);

function fixed(): Choice[] {
  const to = (path: string) => () => go(path);
  return [
    ...(mayAnywhere('admin') ? [{ icon: 'plus' as const, text: t('New job'), do: to('/jobs/new') }, { icon: 'download' as const, text: t('Import jobs'), do: to('/jobs/import') }] : []),
    { icon: 'jobs', text: t('Jobs'), do: to('/jobs') },
    { icon: 'warning', text: t('Failing jobs'), do: to('/jobs?show=failing') },
    { icon: 'runs', text: t('Runs'), do: to('/runs') },
    { icon: 'runs', text: t('Running now'), do: to('/runs?state=running') },
    { icon: 'upcoming', text: t('Upcoming'), do: to('/upcoming') },
    { icon: 'timeline', text: t('Timeline'), do: to('/timeline') },
    { icon: 'heat', text: t('Heat map'), do: to('/timeline/week') },
    { icon: 'cluster', text: t('Cluster'), do: to('/cluster') },
    { icon: 'activity', text: t('Audit'), do: to('/activity') },
    { icon: 'trash', text: t('Deleted jobs'), do: to('/activity?kind=job&action=delete') },
    { icon: 'pause', text: t('Pauses'), do: to('/activity/pauses') },
    { icon: 'upcoming', text: t('Calendars'), do: to('/activity/calendars') },
    { icon: 'jobs', text: t('Groups'), do: to('/activity/groups') },
    { icon: 'lock', text: t('Secrets'), do: to('/activity/secrets') },
    { icon: 'key', text: t('Tokens'), do: to('/activity/tokens') },
    { icon: 'settings', text: t('Settings'), do: to('/settings') },
    { icon: 'moon', text: t('Switch between light and dark'), do: flipTheme },
    { icon: 'globe', text: lang.value === 'zh' ? 'English' : '中文', do: () => void choose(lang.value === 'zh' ? 'en' : 'zh') },
    { icon: following.value ? 'pause' : 'play', text: following.value ? t('Turn off live updates') : t('Turn on live updates'), do: () => setFollowing(!following.value) },
    { icon: 'question', text: t('API reference'), do: () => location.assign('/docs') },
  ];
}

function Palette() {
  const [text, setText] = useState('');
  const [jobs, setJobs] = useState<Job[]>([]);
  const [at, setAt] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      get<Page<Job>>(`/api/v1/jobs${query({ name: text.trim(), limit: 8 })}`, stop.signal).then((p) => setJobs(p.items), () => undefined);
    }, text ? 120 : 0);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text]);

  const word = text.trim().toLowerCase();
  const choices: Choice[] = [
    ...(/^[1-9]\d{9,18}$/.test(word) ? [{ icon: 'runs' as const, text: word, more: t('Run'), do: () => go(`/runs/${word}`) }] : []),
    ...fixed().filter((c) => word && c.text.toLowerCase().includes(word)),
    ...jobs.filter((j) => j.name.toLowerCase().includes(word)).map((j) => ({ icon: 'clock' as const, text: j.name, more: j.app, do: () => go(`/jobs/${j.id}`) })),
    ...(word ? [] : fixed()),
  ];
  const pick = (c?: Choice) => { if (c) { closeDialog(); c.do(); } };
  const key = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      const next = (at + (e.key === 'ArrowDown' ? 1 : choices.length - 1)) % Math.max(1, choices.length);
      setAt(next);
      document.getElementById(`choice-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (e.key === 'Enter' && !e.isComposing) pick(choices[at]);
  };
  return (
    <Plain>
      <input autoFocus role="combobox" aria-expanded="true" aria-controls="choices" aria-activedescendant={`choice-${at}`} aria-label={t('Search')}
        placeholder={t('Job, page or run ID…')} value={text} onInput={(e) => { setText(e.currentTarget.value); setAt(0); }} onKeyDown={key} />
      <ul id="choices" role="listbox" aria-label={t('Search')}>
        {choices.map((c, i) => (
          <li key={i} id={`choice-${i}`} role="option" aria-selected={i === at} onMouseMove={() => i !== at && setAt(i)} onClick={() => pick(c)}>
            <Icon name={c.icon} /><bdi class="cut">{c.text}</bdi>{c.more && <small>{c.more}</small>}
          </li>
        ))}
        {choices.length === 0 && <li role="option" aria-selected="false" class="faint">{t('No matches')}</li>}
      </ul>
    </Plain>
  );
}

function Plain({ children }: { children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const back = document.activeElement as HTMLElement | null;
    ref.current!.showModal();
    return () => { ref.current?.close(); back?.focus?.(); };
  }, []);
  return <dialog ref={ref} class="dialog palette" aria-label={t('Search')} onCancel={(e) => { e.preventDefault(); closeDialog(); }} onMouseDown={(e) => { if (e.target === ref.current) closeDialog(); }}><div class="box">{children}</div></dialog>;
}
