import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { enter, launch, visitor } from './browser';
import { Cluster, until } from './cluster';

// What people come for, each in at most three clicks from the screen where they notice it, and without typing a time.

let cluster: Cluster, browser: Browser, context: BrowserContext, page: Page, wrong: string[];
const ids: Record<string, string> = {};
const limit = { timeout: 90_000 }, most = 3;

before(async () => {
  [cluster, browser] = await Promise.all([Cluster.start(1, ['--no-samples']), launch()]);
  ({ context, page, wrong } = await visitor(browser));
  await enter(context, cluster.urls[0], cluster.token);

  const job = async (spec: Record<string, unknown>) => { ids[String(spec.name)] = (await cluster.job(spec)).id; };
  await job({ app: 'shop', name: 'noisy', every: '2s', command: 'echo no such table: orders; exit 3' });
  await job({ app: 'shop', name: 'less noisy', every: '20s', command: 'exit 4' });
  await job({ app: 'till', name: 'stuck', every: '2s', command: 'sleep 300', grace: '1s' });
  await job({ app: 'night', name: 'at three', schedule: '0 3 * * *', timezone: 'Europe/Berlin', command: 'true' });
  await job({ app: 'past', name: 'hourly', schedule: '0 * * * *', timezone: 'Europe/Berlin', command: 'echo $GOCRONTAB_DUE' });
  await cluster.api('PUT', '/api/v1/alerts/channels/ops', { type: 'webhook', url: 'http://127.0.0.1:9/hook' });
  await until('the jobs have run', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${ids.noisy}&outcome=failed`)).items.length > 2);
  await until('stuck has skipped', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${ids.stuck}&outcome=skipped`)).items.length > 0);
}, { timeout: 150_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });

/** Begins a task at a screen, and counts its clicks. */
async function begin(path: string) {
  let clicks = 0;
  await page.goto(cluster.urls[0] + path);
  await page.locator('main h1').first().waitFor();
  return {
    click: async (what: Locator) => { clicks++; await what.first().click(); },
    choose: async (what: Locator, option: string) => { clicks++; await what.selectOption(option); },
    end: () => {
      assert.ok(clicks <= most, `it took ${clicks} clicks`);
      assert.deepEqual(wrong, [], 'the browser complained');
    },
  };
}
const button = (name: string | RegExp, on: Page | Locator = page) => on.getByRole('button', { name, exact: typeof name === 'string' });
const link = (name: string, on: Page | Locator = page) => on.getByRole('link', { name, exact: true });
const dialog = () => page.getByRole('dialog');

test('create a cron job, in the time zone of the browser', limit, async () => {
  const { click, end } = await begin('/jobs');
  await click(link('New job'));
  await page.locator('#f-name').fill('from nothing');
  await page.locator('#f-schedule').fill('30 6 * * MON-FRI');
  await page.locator('#f-command').fill('echo hello');
  await click(button('Review and create'));
  await click(button('Create', dialog()));
  await page.getByRole('heading', { name: 'from nothing', level: 1, exact: true }).waitFor();
  end();

  const { items } = await cluster.api('GET', '/api/v1/jobs?name=from%20nothing');
  assert.equal(items[0].timezone, 'Europe/Berlin');
});

test('an error is said once, and only after its field was left', limit, async () => {
  await begin('/jobs/new');
  await page.locator('#f-schedule').fill('61 * * * *');
  await page.locator('.notice, .words, .faint').first().waitFor();
  await page.waitForResponse('**/api/v1/preview');
  assert.equal(await page.locator('.field.wrong').count(), 0, 'not while it is typed');
  await page.locator('#f-schedule').blur();
  await page.locator('.field.wrong').getByText(/minute/).waitFor();
  assert.equal(await page.locator('main').getByText(/61/).filter({ hasText: /minute/ }).count(), 1, 'and once');
  await button('Review and create').click();
  await page.locator('.field.wrong #f-command, .notice.bad').first().waitFor();
  assert.equal(await dialog().count(), 0, 'an incomplete job is not offered for saving');
  await page.evaluate(() => sessionStorage.clear());
  await page.goto('about:blank');
});

test('find out why a job did not run', limit, async () => {
  const { click, end } = await begin('/jobs');
  await click(link('stuck'));
  await click(link('Why?'));
  await click(page.locator('.slot', { hasText: 'skipped' }));
  const answer = page.locator('.notice b').first();
  await answer.waitFor();
  assert.doesNotMatch(await answer.innerText(), /\d\.\d{3,}|T\d\d:\d\d:\d\d|_/, 'no microseconds, no machine words');
  end();
});

test('kill a running job', limit, async () => {
  const { click, end } = await begin('/');
  await click(page.getByRole('navigation').getByRole('link', { name: /^Runs/ }));
  await click(button('Kill this run of stuck'));
  await dialog().getByRole('heading', { name: 'Kill this run of stuck?' }).waitFor();
  await click(button('Kill', dialog()));
  end();
  await until('it is killed', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${ids.stuck}&outcome=killed`)).items.length > 0);
});

test('rerun a failed run', limit, async () => {
  const { click, end } = await begin('/');
  await click(page.locator('table.failed tbody tr').filter({ hasText: 'less noisy' }).locator('td.said a'));
  await click(button('Rerun (same scheduled time)'));
  await click(button('Rerun', dialog()));
  end();
  await until('it ran again', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${ids['less noisy']}&trigger=backfill`)).items.length > 0);
});

test('rerun everything that failed in an app', limit, async () => {
  const { click, choose, end } = await begin('/jobs');
  await choose(page.getByLabel('App'), 'shop');
  await click(button('Rerun failed'));
  await dialog().getByText(/^\d+\+? scheduled times? will run again/).waitFor();
  await click(button('Rerun', dialog()));
  await page.getByText(/runs? started again/).waitFor();
  end();
  await until('they ran again', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${ids.noisy}&trigger=backfill`)).items.length > 1);
});

test('pause an app, knowing what it holds back, and resume it', limit, async () => {
  const { click, choose, end } = await begin('/jobs');
  await choose(page.getByLabel('App'), 'till');
  await click(button('Pause app'));
  await dialog().getByText('1 job', { exact: true }).waitFor();
  await click(button('Pause', dialog()));
  await button('Resume app').first().waitFor();
  end();

  await page.goto(`${cluster.urls[0]}/jobs/${ids.stuck}`);
  await button('Resume app').click();
  await button('Resume app', dialog()).click();
  await until('it is resumed', async () => (await cluster.api('GET', `/api/v1/jobs/${ids.stuck}`)).status === 'active');
});

test('backfill the last week', limit, async () => {
  const { click, end } = await begin(`/jobs/${ids.hourly}`);
  await click(button('Backfill'));
  await click(button('Last 7 days', dialog()));
  await dialog().getByText(/^16[789] scheduled times will run/).waitFor();
  await click(button('Start backfill', dialog()));
  await page.waitForURL(/\/backfills/);
  await page.locator('.slot', { hasText: 'succeeded' }).first().waitFor();
  end();
});

test('a backfill of nothing cannot start, and one with failures is not green', limit, async () => {
  await begin(`/jobs/${ids['at three']}`);
  await button('Backfill').first().click();
  const at = new Date(Date.now() - 86400_000).toISOString().slice(0, 10);
  await dialog().getByLabel('From').fill(`${at}T11:00`);
  await dialog().getByLabel('To', { exact: true }).fill(`${at}T12:00`);
  await dialog().getByText('No scheduled times in this range. Choose another one.').waitFor();
  assert.ok(await button('Start backfill', dialog()).isDisabled());

  const { items } = await cluster.api('GET', `/api/v1/runs?job_id=${ids['less noisy']}&trigger=schedule&limit=1`);
  await cluster.api('POST', `/api/v1/jobs/${ids['less noisy']}/backfill`, { from: items[0].due, to: items[0].due });
  await page.goto(`${cluster.urls[0]}/jobs/${ids['less noisy']}/backfills`);
  await page.locator('.badge.bad', { hasText: 'done, with failures' }).first().waitFor();
  await page.locator('.slot', { hasText: 'failed' }).first().waitFor();
});

test('see what runs at three tomorrow', limit, async () => {
  const { click, end } = await begin('/');
  await click(page.getByRole('navigation').getByRole('link', { name: /^Timeline/ }));
  await click(link('Weekly heat map'));
  const tomorrow = new Date(Date.now() + 86400_000).toLocaleDateString('sv', { timeZone: 'Europe/Berlin' });
  await click(page.locator(`.heat button[aria-label^="${tomorrow} 3:00"]`));
  await link('at three').first().waitFor();
  end();
});

test('find the noisiest failing job', limit, async () => {
  const { end } = await begin('/');
  const first = page.locator('table.failed tbody tr').first();
  await first.getByText('no such table: orders').waitFor();
  assert.match(await first.innerText(), /^noisy/);
  end();
});

test('be told of failures of a job', limit, async () => {
  const { click, end } = await begin(`/jobs/${ids.noisy}`);
  await click(button('Add alert'));
  await click(button('Save', dialog()));
  await until('there is a rule', async () => (await cluster.api('GET', '/api/v1/alerts/rules')).items.some((r: any) => r.jobs?.includes('shop/noisy')));
  end();
});

test('import a crontab', limit, async () => {
  const { click, end } = await begin('/jobs');
  await click(link('Import'));
  await page.getByRole('textbox', { name: 'Your crontab' }).fill('0 3 * * * backup.sh\n0 4 * * * load orders');
  await until('it was read', () => button('Import').last().isEnabled());
  await click(button('Import').last());
  await until('the jobs are there', async () => (await cluster.api('GET', '/api/v1/jobs?name=backup')).items.length > 0);
  end();
});

test('create a calendar, close a day by a click, open it again, and import a file', limit, async () => {
  const { click } = await begin('/settings/calendars');
  await click(button('New calendar'));
  await dialog().getByLabel('Name').fill('holidays');
  await button('Sat', dialog()).click();
  await button('Sun', dialog()).click();
  await button('Create', dialog()).click();
  const month = new Date(Date.now() + 40 * 86400_000).toISOString().slice(0, 7), weekday = (day: number) => new Date(`${month}-${String(day).padStart(2, '0')}`).getUTCDay();
  const on = (want: number) => `${month}-${String(Array.from({ length: 7 }, (_, i) => i + 8).find((d) => weekday(d) === want)).padStart(2, '0')}`;
  const monday = on(1), saturday = on(6);

  const save = async () => {
    await button('Review changes').click();
    await dialog().getByLabel('Note').fill('inventory');
    await button('Save', dialog()).click();
    await dialog().waitFor({ state: 'detached' });
  };
  await button(new RegExp(`^${monday}`)).click();
  await button(new RegExp(`^${saturday}`)).click();
  await save();
  let is = await cluster.api('GET', '/api/v1/calendars/holidays');
  assert.deepEqual([is.exclude, is.include, is.exclude_weekdays], [[{ date: monday, note: 'inventory' }], [{ date: saturday, note: 'inventory' }], ['sat', 'sun']]);
  await button(new RegExp(`^${monday} · excluded · inventory`)).click();
  await button(new RegExp(`^${saturday} · make-up day`)).click();
  await save();
  is = await cluster.api('GET', '/api/v1/calendars/holidays');
  assert.equal(is.include, undefined);
  assert.deepEqual((await cluster.api('GET', `/api/v1/calendars/holidays/days?from=${monday}&to=${monday}`)).items[0].state, 'open');

  await button('Import a file').click();
  const ics = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//EN', 'BEGIN:VEVENT', 'UID:1', `DTSTART;VALUE=DATE:${monday.replace(/-/g, '')}`, 'SUMMARY:Inventory', 'END:VEVENT', 'END:VCALENDAR', ''].join('\r\n');
  await dialog().getByLabel('File').setInputFiles({ name: 'days.ics', mimeType: 'text/calendar', buffer: Buffer.from(ics) });
  await dialog().getByText('1 day off, 0 make-up workdays in the file').waitFor();
  await button('Import', dialog()).click();
  await button(new RegExp(`^${monday} · excluded · Inventory`)).waitFor();
  assert.deepEqual(wrong, []);
});

test('on a phone, rows have their actions, and nothing scrolls sideways', limit, async () => {
  const phone = await visitor(browser, { narrow: true });
  await enter(phone.context, cluster.urls[0], cluster.token);
  const open = async (path: string) => { await phone.page.goto(cluster.urls[0] + path); await phone.page.locator('main h1').first().waitFor(); await phone.page.locator('.loading').waitFor({ state: 'detached' }).catch(() => undefined); };

  for (const path of [`/jobs/${ids.noisy}/why`, `/jobs/${ids.hourly}/backfills`, '/settings/calendars/holidays', '/upcoming', '/audit', '/runs']) {
    await open(path);
    assert.ok(await phone.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${path} is too wide`);
  }
  await open('/jobs');
  await phone.page.getByRole('button', { name: 'Actions for noisy', exact: true }).click();
  await phone.page.getByRole('dialog').getByRole('button', { name: 'Backfill', exact: true }).click();
  await phone.page.getByRole('heading', { name: 'Backfill noisy' }).waitFor();
  assert.deepEqual(phone.wrong, []);
  await phone.context.close();
});
