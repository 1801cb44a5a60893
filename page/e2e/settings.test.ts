import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { outages } from '../src/parts/outage';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// What of the cluster is set, many jobs at once, outages on the time line, and doctor in Chinese.

let cluster: Cluster, browser: Browser;
before(async () => { [cluster, browser] = await Promise.all([Cluster.start(1, ['--no-samples']), launch()]); }, { timeout: 240_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });
const limit = { timeout: 180_000 };

async function someone(o: Looks = {}, token = cluster.token) {
  const v = await visitor(browser, o);
  await enter(v.context, cluster.urls[0], token);
  return v;
}
const go = async (path: string, on: Page) => { await on.goto(cluster.urls[0] + path); await on.locator('main h1').first().waitFor(); };

test('outages are told from runs, and from nothing that does not bear them out', () => {
  const t0 = Date.parse('2027-01-30T10:00:00Z'), iso = (s: number) => new Date(t0 + s * 1000).toISOString();
  let n = 0;
  const run = (job: string, due: number, started?: number, more = {}) => ({
    id: String(n++), job_id: job, job, app: 'default', due: iso(due), ...(started !== undefined && { started: iso(started) }), attempt: 1, final: true, state: 'ended', outcome: started === undefined ? 'missed' : 'succeeded',
    node: 'node-1', session: '', trigger: 'schedule', output_bytes: 0, output_truncated: false, ...more }) as any;
  const missed = (job: string, due: number, more = {}) => run(job, due, undefined, { reason_code: 'misfire', reason: 'no node could start it within 1m of its due time', ...more });
  const told = (runs: any[], sessions: any[] = []) => outages(runs, sessions, t0, t0 + 3600_000).map((o) => [(o.from - t0) / 1000, (o.to - t0) / 1000, o.missed, o.late.length, o.nodes.map((x) => x.name).join()]);

  assert.deepEqual(told([run('a', 0, 0.1), run('a', 60, 60.1)]), [], 'all in time');
  assert.deepEqual(told([run('a', 0, 0), missed('a', 60, { until: iso(180), count: 3 }), run('a', 240, 300), run('a', 310, 310.2)]), [[60, 300, 3, 1, '']], 'a range that was missed, and the one that was caught up on');
  assert.deepEqual(told([run('a', 10, 40)]), [], 'one job that was late');
  assert.deepEqual(told([run('a', 10, 40), run('b', 12, 40), run('c', 15, 41)]), [[10, 41, 0, 3, '']], 'three jobs that were late');
  assert.deepEqual(told([run('a', 10, 40)], [{ action: 'reap', kind: 'session', name: 'node-2', at: iso(30) }]), [[10, 40, 0, 1, 'node-2']], 'one that was late while a node vanished');
  assert.deepEqual(told([run('a', 10, 40, { trigger: 'manual' }), run('a', 10, 40, { attempt: 2 }), run('a', 11, undefined, { reason_code: 'wait_deadline', reason: 'it was still waiting when its start deadline passed' })]), [], 'what says nothing of the cluster');
  assert.deepEqual(told([missed('a', 10), run('b', 100, 100), missed('a', 500)]).length, 2, 'a punctual start parts two outages');
});

test('an outage is a mark on the time line that leads to what it concerns', limit, async () => {
  const { page, wrong, context } = await someone();
  const now = Date.now(), iso = (ms: number) => new Date(ms).toISOString();
  const of = (id: string, more: object) => ({ id, job_id: '7', job: 'report', app: 'default', attempt: 1, final: true, state: 'ended', node: 'node-1', session: '', trigger: 'schedule', output_bytes: 0, output_truncated: false, ...more });
  await page.route('**/api/v1/runs?*', (route) => route.fulfill({ json: { items: route.request().url().includes('outcome=missed') || route.request().url().includes('state=running') ? [] : [
    of('1', { due: iso(now - 500_000), started: iso(now - 499_900), ended: iso(now - 499_000), outcome: 'succeeded' }),
    of('2', { due: iso(now - 400_000), until: iso(now - 340_000), count: 4, outcome: 'missed', reason_code: 'misfire', reason: 'no node could start it within 1m of its due time' }),
    of('3', { due: iso(now - 320_000), started: iso(now - 280_000), ended: iso(now - 279_000), outcome: 'succeeded' }),
  ] } }));
  await go('/timeline', page);
  const list = page.locator('.outages');
  await list.getByText('2 m', { exact: true }).waitFor();
  const link = list.getByRole('link', { name: '4 runs were missed' });
  assert.match((await link.getAttribute('href'))!, /\/runs\?outcome=missed&trigger=schedule&from=.*&to=/);
  const mark = page.locator('.lanes canvas'), box = (await mark.boundingBox())!, at = box.x + 150 + ((900_000 - 370_000) / 900_000) * (box.width - 158);
  await page.mouse.move(at, box.y + 4);
  await page.locator('.tip').getByText('4 runs were missed').waitFor();
  await page.mouse.click(at, box.y + 4);
  await page.waitForURL(/\/runs\?trigger=schedule&from=/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('limits of apps: what each has now, errors at the field, what would change, and then it is so', limit, async () => {
  const { page, wrong, context } = await someone();
  await cluster.job({ app: 'ware', name: 'one', every: '1000h', command: 'true' });
  await go('/settings', page);
  const card = page.locator('#limits'), dialog = page.getByRole('dialog'), fresh = page.getByRole('button', { name: 'New app limits' });
  await card.getByText('No app has limits').waitFor();
  await fresh.click();
  await dialog.getByLabel('App', { exact: true }).fill('wear');
  await dialog.getByText('The app wear has no jobs yet.').waitFor();
  await dialog.getByLabel('App', { exact: true }).fill('ware');
  await dialog.getByLabel('Jobs', { exact: true }).fill('-1');
  await dialog.getByLabel('Kept output').fill('1KB');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  await dialog.getByText('the oldest is deleted within minutes', { exact: false }).waitFor();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await until('both fields are wrong', async () => await dialog.locator('.field.wrong').count() === 2);
  await dialog.getByLabel('Jobs', { exact: true }).fill('1');
  await dialog.getByLabel('Kept output').fill('2GiB');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  assert.match(await dialog.locator('.diff').innerText(), /Jobs[\s\S]*1[\s\S]*Kept output[\s\S]*2GiB/);
  await dialog.getByRole('button', { name: 'Save' }).click();
  const row = card.getByRole('row', { name: 'ware' });
  await row.getByText('1 / 1').waitFor();
  await row.getByText('0 B / 2 GiB').waitFor();
  assert.equal(await row.locator('.warn-text').count(), 1, 'it is at its limit of jobs, and of nothing else');
  const { use, ...set } = await cluster.api('GET', '/api/v1/apps/ware/limits');
  assert.deepEqual(set, { app: 'ware', jobs: 1, output: '2GiB' });
  assert.equal(use.jobs, 1);

  // New limits take the place of none: what is there is edited.
  await fresh.click();
  await dialog.getByLabel('App', { exact: true }).fill('ware');
  await dialog.getByText('The app ware already has limits').waitFor();
  assert.ok(await dialog.getByRole('button', { name: 'Review changes' }).isDisabled());
  await dialog.getByRole('button', { name: 'Edit' }).click();
  await dialog.getByRole('heading', { name: 'Limits of the app ware' }).waitFor();
  for (const field of ['Jobs', 'Kept output']) await dialog.getByLabel(field, { exact: true }).fill('');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  await dialog.getByText('The app will have no limits', { exact: false }).waitFor();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await card.getByText('No app has limits').waitFor();

  // Who may not change them sees them, in Chinese too, on a narrow screen.
  await cluster.api('PUT', '/api/v1/apps/ware/limits', { waiting: 3 });
  const viewer = await cluster.api('POST', '/api/v1/tokens', { name: 'looks-at-limits', role: 'viewer' });
  const other = await someone({ narrow: true, zh: true, dark: true }, viewer.token);
  await go('/settings', other.page);
  await other.page.locator('#limits').getByText('0 / 3').waitFor();
  assert.equal(await other.page.locator('#limits button').count(), 0);
  assert.equal(await other.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  await go('/audit?kind=limits', other.page);
  await other.page.locator('main').getByText('上限').filter({ visible: true }).first().waitFor();
  assert.deepEqual([...wrong, ...other.wrong], []);
  await cluster.api('DELETE', '/api/v1/apps/ware/limits');
  await Promise.all([context.close(), other.context.close()]);
});

test('the rule of the cluster: errors at the field, what would change, and then it is so', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/settings/retention', page);
  await page.getByRole('button', { name: 'Edit the rule of The whole cluster' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Keep runs for').fill('1s');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  await dialog.getByText('cannot be restored', { exact: false }).waitFor();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.locator('.field.wrong').getByText('is not between', { exact: false }).waitFor();
  await dialog.getByLabel('Keep runs for').fill('1440h');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  assert.match(await dialog.locator('.diff').innerText(), /age[\s\S]*1440h/);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.locator('#retention').getByText('Runs are kept for 60 days').waitFor();
  const { items } = await cluster.api('GET', '/api/v1/retention');
  assert.equal(items[0].age, '1440h');

  // An app's rule is made, and never replaced by one that is new: what is there is shown, and edited.
  const rule = page.getByRole('button', { name: 'New app rule' });
  await rule.click();
  await dialog.getByLabel('App', { exact: true }).fill('shop');
  await dialog.getByLabel('Keep the latest').fill('77');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.locator('#retention').getByText('Only the latest 77 scheduled times are kept').waitFor();
  await rule.click();
  await dialog.getByLabel('App', { exact: true }).fill('shop');
  await dialog.getByLabel('Keep runs for').fill('99h');
  await dialog.getByText('The app shop already has a rule').waitFor();
  assert.ok(await dialog.getByRole('button', { name: 'Review changes' }).isDisabled());
  await dialog.getByRole('button', { name: 'Edit' }).click();
  await dialog.getByRole('heading', { name: 'Retention of the app shop' }).waitFor();
  assert.equal(await dialog.getByLabel('Keep the latest').inputValue(), '77');
  await dialog.getByLabel('Keep runs for').fill('720h');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.locator('#retention').getByText('Runs are kept for 30 days').waitFor();
  assert.deepEqual((await cluster.api('GET', '/api/v1/retention')).items.find((r: any) => r.app === 'shop'), { scope: 'app', app: 'shop', age: '720h', runs: 77 });

  // Somebody else makes one between two looks at the list; and where that cannot be read, this is said.
  let held = true;
  const list = await cluster.api('GET', '/api/v1/retention');
  await page.route('**/api/v1/retention', (route) => (held ? route.fulfill({ json: list }) : route.continue()));
  await rule.click();
  await dialog.getByLabel('App', { exact: true }).fill('race');
  await dialog.getByLabel('Keep the latest').fill('5');
  await dialog.getByRole('button', { name: 'Review changes' }).click();
  await cluster.api('PUT', '/api/v1/apps/race/retention', { runs: 99 });
  await page.route('**/api/v1/apps/race/retention', (route) => { held = false; return route.continue(); });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('The app race already has a rule').waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/retention')).items.find((r: any) => r.app === 'race').runs, 99);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.unroute('**/api/v1/retention');
  await page.route('**/api/v1/retention', (route) => route.fulfill({ status: 503, json: { title: 'Away', detail: 'for a moment', status: 503 } }));
  await rule.click();
  await dialog.getByText('for a moment').waitFor();
  await page.unroute('**/api/v1/retention');
  await dialog.getByRole('button', { name: 'Try again' }).click();
  await dialog.getByLabel('App', { exact: true }).fill('other');
  await dialog.getByLabel('Keep the latest').fill('5');
  await until('the list was read', () => dialog.getByRole('button', { name: 'Review changes' }).isEnabled());
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  // A job's own words count more, and both say whose they are.
  const j = await cluster.job({ name: 'kept', every: '1h', command: 'true' });
  await go(`/jobs/${j.id}/edit`, page);
  await page.getByText('Retention').first().click();
  await page.locator('#f-keep-runs').fill('zero');
  await page.locator('#f-keep-runs').blur();
  await page.locator('.field.wrong #f-keep-runs').waitFor();
  await page.locator('#f-keep-runs').fill('500');
  await page.getByText('Only the latest 500 scheduled times are kept').waitFor();
  await page.locator('.field:not(.wrong) #f-keep-runs').waitFor();
  await page.getByRole('button', { name: 'Review changes' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await page.waitForURL(new RegExp(`/jobs/${j.id}$`));
  const card = page.locator('.card', { hasText: 'Retention' });
  await card.getByText('job setting').waitFor();
  await card.getByText('cluster default').first().waitFor();
  assert.equal((await cluster.api('GET', `/api/v1/jobs/${j.id}`)).keep.runs, 500);

  // The log of the node that answers.
  await go('/settings', page);
  await page.getByLabel('Log level').selectOption('debug');
  await page.locator('#log').getByRole('button', { name: 'Change level' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Change level' }).click();
  await page.locator('#log').getByText('Log level: debug', { exact: false }).waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/log-level')).level, 'debug');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('who may not change a thing is told so, and finds no button for it', limit, async () => {
  const { token } = await cluster.api('POST', '/api/v1/tokens', { name: 'looks', role: 'viewer' });
  const { page, wrong, context } = await someone({}, token);
  await go('/settings/retention', page);
  await page.locator('#retention').getByText('Needs admin role', { exact: false }).waitFor();
  assert.equal(await page.locator('main').getByRole('button', { name: /Edit|Pause|Change|New|Rule/ }).count(), 0);
  await go('/settings', page);
  await page.locator('#facts').getByText('Schema version').waitFor();
  assert.equal(await page.locator('main').getByRole('button', { name: /Edit|Pause|Change|New|Rule/ }).count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('picked jobs: one request, said beforehand what it would do', limit, async () => {
  const { page, wrong, context } = await someone();
  for (const name of ['many a', 'many b', 'many c']) await cluster.job({ name, every: '1h', command: 'true' });
  const asked: string[] = [];
  page.on('request', (r) => { if (r.method() === 'POST' && !/login|events/.test(r.url())) asked.push(new URL(r.url()).pathname + (r.url().includes('dry_run=true') ? ' (dry)' : '')); });
  await go('/jobs?q=many', page);
  for (const name of ['many a', 'many b']) await page.getByLabel(`Select ${name}`).check();
  const bar = page.getByRole('region', { name: 'Selected jobs' });
  await bar.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('a move');
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('Done for 2 jobs').waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/jobs?name=many&status=paused')).items.length, 2);
  for (const name of ['many a', 'many c']) await page.getByLabel(`Select ${name}`).check();
  await bar.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('dialog').getByText('1 will change, 1 unchanged').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByText('Done for 1 job, 1 unchanged').waitFor();
  assert.deepEqual(asked, ['/api/v1/bulk/pause (dry)', '/api/v1/bulk/pause', '/api/v1/bulk/resume (dry)', '/api/v1/bulk/resume']);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('doctor and the warnings of the editor in Chinese', limit, async () => {
  const { page, wrong, context } = await someone({ zh: true });
  await go('/cluster', page);
  await page.locator('.findings').getByText('只有一个节点在线').waitFor(); // there is but one
  await page.locator('.findings [lang="en"]').getByText('is the only node', { exact: false }).waitFor(); // and the server's own words
  await page.getByRole('button', { name: /^全部 \d+ 项/ }).click();
  await page.getByText('提交的事务不会因断电丢失').waitFor();
  await page.evaluate(() => sessionStorage.setItem('draft:new', JSON.stringify({ text: 'name: w\nschedule: "0 * * * *"\ncommand: "true"\ntimeout: 2h\n', format: 'yaml' })));
  await go('/jobs/new', page);
  await page.getByText('它最长可运行 2h（timeout），但 1h 后又会到期：期间的计划时间会被跳过（overlap skip）').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
for (const [name, looks] of Object.entries<Looks>({ light: {}, dark: { dark: true }, narrow: { narrow: true }, 'Chinese, dark, narrow': { zh: true, dark: true, narrow: true } })) {
  test(`the settings can be read by all: ${name}`, limit, async () => {
    const v = await someone(looks), found: string[] = [];
    for (const path of ['/settings', '/timeline']) {
      await go(path, v.page);
      await until('all is there', async () => (await v.page.locator('main .loading').count()) === 0);
      await wait(300);
      const over = await v.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) found.push(`${path}: ${over} pixels wider than the window`);
      await v.page.evaluate(axe);
      const result = await v.page.evaluate(() => (window as any).axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
      for (const x of result.violations) found.push(`${path}: ${x.id}: ${x.nodes.slice(0, 2).map((n: { html: string }) => n.html.slice(0, 160)).join(' | ')}`);
      if (process.env.SHOTS) await v.page.screenshot({ path: `${process.env.SHOTS}/${path.slice(1)}-${name.replace(/\W+/g, '-')}.png`, fullPage: true });
    }
    assert.deepEqual([...v.wrong, ...found], []);
    await v.context.close();
  });
}
