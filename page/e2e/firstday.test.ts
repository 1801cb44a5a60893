import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// What somebody wants who comes with jobs of their own: take them over, be told when one fails, run a due time again, and
// find what was deleted.

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

test('a crontab is pasted: what it would make, what it cannot, and then it is there', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/jobs', page);
  await page.getByRole('link', { name: 'Import', exact: true }).click();
  const text = page.getByRole('textbox', { name: 'Your crontab' }), button = page.getByRole('button', { name: 'Import', exact: true });
  await text.fill('MAILTO=ops@example.com\n0 3 * * * backup.sh\n@reboot start.sh\n0 4 * * * load orders');
  await page.getByText('1 line skipped').waitFor();
  await page.getByText('at 03:00 every day, Europe/Berlin').waitFor();
  await page.getByLabel('App', { exact: true }).fill('tab');
  await page.getByLabel('Time zone').fill('Asia/Shanghai');
  await page.getByText('at 03:00 every day, Asia/Shanghai').waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/jobs?app=tab')).items.length, 0, 'nothing is there before it was said');
  assert.ok(await button.isDisabled(), 'a line that cannot be a job is not left out unless somebody says so');
  await page.getByLabel('Import without it').check();
  assert.ok(await button.isEnabled());
  // Who agreed to one line has not agreed to others; and all that was typed outlives a reload.
  const lines = await text.inputValue();
  await text.fill(lines + '\n@reboot another.sh');
  await page.getByText('2 lines skipped').waitFor();
  assert.ok(await button.isDisabled());
  await text.fill(lines);
  await page.getByText('1 line skipped').waitFor();
  await page.getByLabel('Lines contain a user name').check();
  await page.reload();
  await page.getByText('at 04:00 every day, Asia/Shanghai').waitFor(); // the other line has no command behind the user
  assert.deepEqual([await text.inputValue(), await page.getByLabel('App', { exact: true }).inputValue(), await page.getByLabel('Time zone').inputValue(), await page.getByLabel('Lines contain a user name').isChecked()], [lines, 'tab', 'Asia/Shanghai', true]);
  await page.getByLabel('Lines contain a user name').uncheck();
  await page.getByText('1 line skipped').waitFor();
  await page.getByLabel('Import without it').check();
  await button.click();
  await page.getByText('2 objects created or changed').waitFor();
  await page.waitForURL(/\/jobs\?app=tab$/);
  const jobs = (await cluster.api('GET', '/api/v1/jobs?app=tab')).items;
  assert.deepEqual(jobs.map((j: any) => [j.name, j.command, j.owner, j.timezone]).sort(), [['backup', 'backup.sh', 'ops@example.com', 'Asia/Shanghai'], ['load', 'load orders', 'ops@example.com', 'Asia/Shanghai']].sort());

  // Once more with another time: what is there is changed, and that is said beforehand.
  await go('/jobs/import', page);
  assert.equal(await text.inputValue(), '', 'what was imported is typed no more');
  await page.getByLabel('App', { exact: true }).fill('tab');
  await page.getByLabel('Time zone').fill('Asia/Shanghai');
  await text.fill('MAILTO=ops@example.com\n30 5 * * * backup.sh\n');
  await page.locator('.badge.warn', { hasText: /^changed$/ }).waitFor();
  assert.match(await page.locator('.diff').innerText(), /schedule[\s\S]*0 3 \* \* \*[\s\S]*30 5 \* \* \*/);
  assert.ok(await button.isDisabled(), 'it may be another job that has the name');
  await page.getByText('1 job with this name already exists').waitFor();
  await page.getByLabel('Replace it').check();
  // Meanwhile somebody changes that job: theirs is not written over.
  const is = jobs.find((j: any) => j.name === 'backup');
  await cluster.api('PATCH', `/api/v1/jobs/${is.id}`, { description: 'theirs' });
  await button.click();
  await page.locator('.notice.bad').waitFor();
  assert.equal((await cluster.api('GET', `/api/v1/jobs/${is.id}`)).schedule, '0 3 * * *');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a crontab names jobs that are there, and has a column for users; in Chinese what is told of it is Chinese', limit, async () => {
  const { page, wrong, context } = await someone();
  await cluster.job({ name: 'backup', app: 'taken', every: '1h', command: 'of-somebody-else' });
  await go('/jobs/import', page);
  const text = page.getByRole('textbox', { name: 'Your crontab' }), button = page.getByRole('button', { name: 'Import', exact: true });
  await page.getByLabel('App', { exact: true }).fill('taken');
  await text.fill('0 3 * * * backup.sh\n0 4 * * * load orders\n');
  await page.getByText('1 job with this name already exists').waitFor();
  assert.ok(await button.isDisabled());
  assert.match(await page.locator('.diff').innerText(), /of-somebody-else[\s\S]*backup\.sh/);
  await page.getByLabel('Replace it').check();
  assert.ok(await button.isEnabled());
  await text.fill('17 * * * * root cd / && run-parts\n');
  const notice = page.getByText('A command begins with root. Do the lines contain a user name?');
  await notice.waitFor();
  await page.getByLabel('Lines contain a user name').check();
  await notice.waitFor({ state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();

  const zh = await someone({ zh: true });
  await go('/jobs/import', zh.page);
  await zh.page.locator('textarea').fill('MAILTO=ops@example.com\n0 3 * * * backup.sh &\n@reboot start.sh\n');
  for (const said of ['集群没有开机', '成为以下任务的负责人', '命令以 & 结尾', '上一次运行尚未结束时']) await zh.page.getByText(said).first().waitFor();
  await zh.context.close();
});

test('a file is pasted: groups and jobs, what is wrong with it, and again it changes nothing', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/jobs/import', page);
  const text = page.getByRole('textbox', { name: 'Your crontab' }), button = page.getByRole('button', { name: 'Import', exact: true });
  const file = 'groups:\n  - name: house\n    slots: 2\njobs:\n  - name: one of a file\n    schedule: 0 3 * * *\n    group: house\n    command: "true"\n---\nname: another of it\nevery: 1h\ncommand: echo\n';
  await text.fill(file.replace('every: 1h', 'every: never'));
  await page.locator('.notice.bad', { hasText: 'another of it · every' }).waitFor();
  await text.fill(file.replace('name: another', '  name: another'));
  await page.getByText('Cannot read the text').waitFor();
  assert.ok(await button.isDisabled());
  // A job has the names of its calendars in a list, JSON values may stand behind each other, and what goes round and round is told.
  await text.fill('name: closed on holidays\nschedule: 0 3 * * *\ncommand: "true"\ncalendars: [holidays]\n');
  await page.locator('.notice.bad', { hasText: 'closed on holidays · calendars' }).waitFor();
  await text.fill('{"name": "a", "every": "1h", "command": "echo }"}\n{\n  "name": "b", "every": "1h", "command": "b"\n}\n\n[{"name": "c", "every": "1h", "command": "c"}]\n');
  await page.locator('.badge.good', { hasText: '3 new' }).waitFor();
  await text.fill('name: round\nevery: 1h\ncommand: x\nlabels: &l\n  a: *l\n');
  await page.getByText('Cannot read the text').waitFor();
  await text.fill(file);
  await page.getByText('one of a file', { exact: true }).waitFor();
  await page.locator('.badge.good', { hasText: '3 new' }).waitFor();
  await button.click();
  await page.getByText('3 objects created or changed').waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/groups/house')).slots, 2);
  await go('/jobs/import', page);
  await text.fill(file);
  await page.locator('.badge.mute', { hasText: '3 unchanged' }).waitFor();
  assert.ok(await button.isDisabled(), 'there is nothing to do');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('who may change no job is not asked for any', limit, async () => {
  const { token } = await cluster.api('POST', '/api/v1/tokens', { name: 'operates', role: 'operator' });
  const { page, wrong, context } = await someone({}, token);
  await page.goto(cluster.urls[0] + '/jobs/import');
  await page.getByText('Changing jobs needs the admin role').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('alert when it fails: from the job, with the first channel on the way', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'fragile', app: 'shop', every: '1h', command: 'false' });
  await go(`/jobs/${j.id}`, page);
  const alert = page.getByRole('button', { name: 'Add alert', exact: true }), dialog = page.getByRole('dialog');
  await alert.click();
  assert.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'shop/fragile');
  assert.equal(await dialog.getByLabel('Jobs', { exact: true }).inputValue(), 'shop/fragile');
  assert.ok(await dialog.getByLabel('Run failed').isChecked());
  await dialog.getByLabel('Description').fill('what was typed stays');
  await dialog.getByRole('button', { name: 'New channel' }).click();
  await dialog.getByRole('button', { name: 'Cancel' }).click(); // back at the rule
  await dialog.getByRole('button', { name: 'New channel' }).click();
  await dialog.getByLabel('Name', { exact: true }).fill('hook');
  await dialog.getByLabel('URL').fill('https://hook.invalid/x');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByRole('checkbox', { name: /^hook/ }).waitFor();
  assert.ok(await dialog.getByRole('checkbox', { name: /^hook/ }).isChecked());
  assert.equal(await dialog.getByLabel('Description').inputValue(), 'what was typed stays');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText('shop/fragile saved').waitFor();
  const rule = await cluster.api('GET', '/api/v1/alerts/rules/shop%2Ffragile');
  assert.deepEqual([rule.jobs, rule.channels, rule.on.includes('failed'), rule.description], [['shop/fragile'], ['hook'], true, 'what was typed stays']);
  await alert.click(); // there is one: that is shown
  await dialog.getByRole('heading', { name: 'shop/fragile' }).waitFor();
  await dialog.getByLabel('Repeat every').fill('4h');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await until('the rule is changed', async () => (await cluster.api('GET', '/api/v1/alerts/rules/shop%2Ffragile')).repeat === '4h');
  assert.equal((await cluster.api('GET', '/api/v1/alerts/rules')).items.length, 1);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a due time that failed runs again as that due time', limit, async () => {
  const { page, wrong, context } = await someone();
  const job = (schedule: string, command: string) => cluster.job({ name: 'tells its due time', schedule, command });
  const j = await job('0 * * * *', 'echo "for $GOCRONTAB_DUE"; false'), hour = 3600_000, due = new Date(Math.floor(Date.now() / hour) * hour - hour).toISOString();
  await cluster.api('POST', `/api/v1/jobs/${j.id}/backfill`, { from: due, to: due });
  const failed = await until('it has failed', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&outcome=failed`)).items[0]);
  await job('0 * * * *', 'echo "mended for $GOCRONTAB_DUE"');
  await go(`/runs/${failed.id}`, page);
  const again = page.getByRole('button', { name: 'Rerun (same scheduled time)' }), dialog = page.getByRole('dialog');
  await again.click();
  await dialog.getByRole('button', { name: 'Rerun', exact: true }).click();
  await page.waitForURL((u) => !u.pathname.endsWith(failed.id)); // to its run, or to the backfills where it has not begun soon
  const mended = await until('it ran again', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&outcome=succeeded`)).items[0]);
  assert.deepEqual([mended.trigger, mended.due], ['backfill', failed.due]);
  await go(`/runs/${mended.id}`, page);
  const line = page.locator('.out', { hasText: 'mended for' });
  await line.waitFor();
  assert.ok((await line.innerText()).includes(failed.due.slice(0, 19)), `${await line.innerText()} is not of ${failed.due}`);

  // What is no due time any more cannot be run as one; it can be run now.
  await job('30 5 1 1 *', 'echo by hand');
  await go(`/runs/${failed.id}`, page);
  await again.click();
  await dialog.getByRole('button', { name: 'Rerun', exact: true }).click();
  await dialog.getByText('With its current schedule, the job has no run at that time.').waitFor();
  await dialog.getByRole('button', { name: 'Run now' }).click();
  await until('it ran by hand', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&trigger=manual`)).items[0]);

  // Of a record that counts more than one backfill takes, a part can be chosen.
  await page.route(`**/api/v1/runs/${failed.id}`, async (route) => { const r = await route.fetch(); await route.fulfill({ response: r, json: { ...(await r.json()), count: 2_000_000, until: failed.due } }); });
  await page.route(`**/api/v1/jobs/${j.id}/backfill`, (route) => route.fulfill({ status: 422, contentType: 'application/problem+json', json: { title: 'Some values are invalid', status: 422, errors: [{ field: 'to', code: 'backfill_too_large', values: ['2000000', '1000000'], message: 'the range has 2000000 due times; at most 1000000 are allowed: give a shorter one' }] } }));
  await go(`/runs/${failed.id}`, page);
  await again.click();
  await dialog.getByRole('button', { name: 'Rerun', exact: true }).click();
  await dialog.getByRole('button', { name: 'Backfill part of the range' }).click();
  await dialog.getByRole('heading', { name: 'Backfill tells its due time' }).waitFor();
  assert.match(await dialog.getByLabel('From').inputValue(), /T\d\d:00$/);
  assert.equal(await dialog.getByLabel('To', { exact: true }).inputValue(), await dialog.getByLabel('From').inputValue());
  assert.equal(new URL(page.url()).search, '', 'a reload does not ask again');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('deleted jobs: which there were, their records and what they were', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'gone for good', app: 'shop', every: '1h', command: 'echo it was here' });
  await cluster.api('POST', `/api/v1/jobs/${j.id}/run`, {});
  await until('it ran', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&state=ended`)).items[0]);
  await cluster.api('DELETE', `/api/v1/jobs/${j.id}`);
  await go('/audit', page);
  await page.getByRole('button', { name: 'Deleted jobs' }).click();
  await page.getByRole('link', { name: 'gone for good' }).click();
  await page.getByRole('heading', { name: 'gone for good' }).waitFor();
  await page.locator('.card', { hasText: 'Definition' }).getByText('echo it was here').waitFor();
  await page.locator('table.runs a').first().click();
  await page.getByText('it was here').waitFor();
  await page.getByRole('link', { name: 'shop/gone for good' }).click(); // and back
  await page.getByRole('heading', { name: 'gone for good' }).waitFor();
  await page.getByRole('link', { name: 'Deleted jobs' }).click();
  await page.getByRole('button', { name: 'Deleted jobs', pressed: true }).waitFor();
  await page.goto(cluster.urls[0] + '/jobs/987654321');
  await page.getByRole('heading', { name: 'Job not found' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
for (const [name, looks] of Object.entries<Looks>({ light: {}, dark: { dark: true }, narrow: { narrow: true }, 'Chinese, dark, narrow': { zh: true, dark: true, narrow: true } })) {
  test(`an import can be read by all: ${name}`, limit, async () => {
    const v = await someone(looks);
    await go('/jobs/import', v.page);
    await v.page.locator('textarea').fill('MAILTO=ops@example.com\n# nightly\n0 3 * * * /usr/local/bin/backup.sh --all --with-a-long-word-that-has-no-end=/var/lib/somewhere/else\n@reboot start.sh\n*/5 * * * * load orders\n');
    await v.page.locator('.badge.good').first().waitFor();
    await wait(300);
    const found: string[] = [], over = await v.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) found.push(`${over} pixels wider than the window`);
    await v.page.evaluate(axe);
    const result = await v.page.evaluate(() => (window as any).axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
    for (const x of result.violations) found.push(`${x.id}: ${x.nodes.slice(0, 2).map((n: { html: string }) => n.html.slice(0, 160)).join(' | ')}`);
    if (process.env.SHOTS) await v.page.screenshot({ path: `${process.env.SHOTS}/import-${name.replace(/\W+/g, '-')}.png`, fullPage: true });
    assert.deepEqual([...v.wrong, ...found], []);
    await v.context.close();
  });
}
