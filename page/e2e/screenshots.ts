import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// Takes the pictures of the README and the documents: a cluster of three nodes that has done a few minutes of work. With
// ALL=1 it takes every screen in every look, to be looked at: those are not kept.

const everything = !!process.env.ALL;
const out = everything ? resolve('e2e', 'out', 'screens') : resolve('..', 'docs', 'images');

const cluster = await Cluster.start(3, ['--no-samples']);
const browser = await launch();
try {
  mkdirSync(out, { recursive: true });
  await cluster.api('PUT', '/api/v1/groups/warehouse', { slots: 2 });
  await cluster.api('PUT', '/api/v1/calendars/china', { timezone: 'Asia/Shanghai', exclude_weekdays: ['sat', 'sun'], exclude: ['2027-02-05..2027-02-11'], include: ['2027-02-20'] });
  const jobs: Record<string, unknown>[] = [
    { name: 'probe', app: 'shop', description: 'Is the shop there?', every: '5s', command: 'sleep 0.2; echo "HTTP/1.1 200 OK"', labels: { team: 'shop' } },
    { name: 'import prices', app: 'shop', description: 'Prices of all suppliers', every: '20s', command: 'fetch-prices --all', retry: { attempts: 2, backoff: '5s' }, labels: { team: 'shop' } },
    { name: 'thumbnails', app: 'shop', schedule: '*/1 * * * *', command: 'for i in {1..9}; do echo "picture $i of 9"; sleep 1; done', group: 'warehouse' },
    { name: 'sync orders', app: 'shop', every: '15s', command: 'sleep 6; echo 184 orders', group: 'warehouse' },
    { name: 'flaky', description: 'Fails about one time in three', every: '10s', command: 'sleep 0.$((RANDOM % 9)); exit $((RANDOM % 3 == 0))' },
    { name: 'nightly backup', schedule: '0 3 * * *', timezone: 'Europe/Berlin', command: 'set -o pipefail; pg_dump shop | gzip > /backup/shop.part && mv /backup/shop.part /backup/shop.gz', timeout: '30m', owner: 'team-data@example.com', labels: { team: 'data', tier: '1' } },
    { name: 'close the day', app: 'billing', schedule: '30 6 * * MON-FRI', timezone: 'Asia/Shanghai', command: './close-day.sh', calendars: ['china'], labels: { team: 'billing' } },
    { name: 'statements', app: 'billing', schedule: '0 9 1 * *', timezone: 'Asia/Shanghai', http: { url: 'https://example.com/statements?month={{due}}', method: 'POST' }, retry: { attempts: 3, backoff: '1m' } },
    { name: 'vacuum', schedule: '0 4 * * SUN', command: 'psql -c "VACUUM ANALYZE" shop' },
    { name: 'hourly report', schedule: '0 * * * *', command: './report.sh' },
    { name: 'rotate logs', schedule: '0 0 * * *', command: 'logrotate /etc/logrotate.conf' },
    { name: 'move the clocks', schedule: '30 2 * * *', timezone: 'Europe/Berlin', start: '2027-03-26T00:00:00Z', command: 'true' },
    { name: 'mirror', every: '30m', command: 'rsync -a /data mirror:/data' },
    { name: 'build', description: 'Compiles, and says so in colour', schedule: '0 5 * * *', command: `printf '\\033[1m== build 2041 ==\\033[0m\\n'; for p in api auth cli node schedule sql; do printf '\\033[32mok\\033[0m   %-10s 0.%ss\\n' $p $((RANDOM % 90 + 10)); sleep 0.1; done; printf '\\033[33mwarning\\033[0m schedule: 2 tests were slow\\n\\033[31mFAIL\\033[0m execute    TestStop: still running after 5s\\n'; exit 1` },
  ];
  await cluster.api('PUT', '/api/v1/alerts/channels/ops%20chat', { type: 'slack', url: 'https://chat.invalid/hook' }); // nobody listens there
  await cluster.api('PUT', '/api/v1/alerts/rules/shop', { on: ['failed', 'recovered', 'node_gone'], apps: ['shop', 'default'], channels: ['ops chat'] });
  const ids: Record<string, string> = {};
  for (const j of jobs) ids[String(j.name)] = (await cluster.job(j)).id;
  await cluster.api('POST', `/api/v1/jobs/${ids.mirror}/pause`, { reason: 'The mirror gets new disks', until: '4h' });
  await cluster.api('POST', `/api/v1/jobs/${ids.build}/run`, {});
  console.log('the cluster works for three minutes');
  await wait(180_000);
  const failed = await until('the build has failed', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${ids.build}&state=ended`)).items[0]);

  const screens: Record<string, string> = {
    jobs: '/jobs', job: `/jobs/${ids.flaky}`, definition: `/jobs/${ids['nightly backup']}/definition`, versions: `/jobs/${ids.mirror}/versions`, run: `/runs/${failed.id}`, runs: '/runs',
    editor: `/jobs/${ids['move the clocks']}/edit`, new: '/jobs/new', import: '/jobs/import', cluster: '/cluster', timeline: '/timeline', week: '/timeline/week', upcoming: '/upcoming?span=day', audit: '/audit', overview: '/', night: '/timeline/slots',
    alerts: '/alerts', rules: '/alerts/rules', channels: '/alerts/channels', settings: '/settings', why: `/jobs/${ids.flaky}/why?at=${encodeURIComponent(failed.due)}`,
    pauses: '/settings/pauses', calendars: '/settings/calendars/china', groups: '/settings/groups', secrets: '/settings/secrets', tokens: '/settings/tokens',
  };
  const ways: Record<string, Looks> = { light: {}, dark: { dark: true }, narrow: { narrow: true }, zh: { zh: true } };
  const shown: [file: string, screen: string, looks: Looks][] = everything
    ? Object.keys(screens).flatMap((s) => Object.entries(ways).map(([w, looks]) => [`${s}-${w}`, s, looks] as [string, string, Looks]))
    : [['jobs', 'jobs', {}], ['jobs-zh', 'jobs', { zh: true }], ['jobs-narrow', 'jobs', { narrow: true }], ['run', 'run', {}], ['run-narrow', 'run', { narrow: true, dark: true }], ['editor', 'editor', {}], ['import', 'import', {}], ['cluster', 'cluster', { dark: true }], ['timeline', 'timeline', {}],
      ['week', 'week', {}], ['upcoming', 'upcoming', {}], ['alerts', 'alerts', {}], ['settings', 'settings', { dark: true }]];
  const take = async (looks: Looks) => { // all pictures of a look, in one browser of its own
    const v = await visitor(browser, looks);
    await enter(v.context, cluster.urls[0], cluster.token);
    for (const [file, name] of shown.filter(([, , l]) => JSON.stringify(l) === JSON.stringify(looks))) {
      await v.page.goto(cluster.urls[0] + screens[name]);
      await v.page.locator('main h1').first().waitFor();
      await v.page.locator('.loading').first().waitFor({ state: 'detached' });
      if (name === 'import') await v.page.locator('textarea').fill('MAILTO=shop@example.com\n# prices of all suppliers\n*/10 6-22 * * 1-5 fetch-prices --all\n@daily sleep $((RANDOM \\% 1800)); clean-up\n@reboot start-cache\n');
      await wait(2500);
      await v.page.screenshot({ path: join(out, file + '.png'), fullPage: everything });
      if (v.wrong.length) throw new Error(`${file}: ${v.wrong.join('; ')}`);
    }
    await v.context.close();
  };
  const looks = new Map(shown.map(([, , l]) => [JSON.stringify(l), l]));
  await Promise.all([...looks.values()].map(take));
  for (const f of readdirSync(out)) console.log(`${join(out, f)}: ${Math.round(statSync(join(out, f)).size / 1024)} KiB`);
} finally {
  await browser.close();
  await cluster.stop();
}
