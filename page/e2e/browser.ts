import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--font-render-hinting=none'];

export function launch(): Promise<Browser> {
  const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find((p) => p && existsSync(p));
  if (!executablePath) throw new Error('there is no Chromium: tools/deps.sh browser installs it, or CHROMIUM says where one is');
  return chromium.launch({ executablePath, args: flags });
}

export interface Looks { dark?: boolean; narrow?: boolean; zh?: boolean }

/** A browser of its own, with nothing kept, and what went wrong in it. */
export async function visitor(browser: Browser, o: Looks & BrowserContextOptions = {}): Promise<{ context: BrowserContext; page: Page; wrong: string[] }> {
  const { dark, narrow, zh, ...rest } = o;
  const context = await browser.newContext({
    viewport: narrow ? { width: 360, height: 760 } : { width: 1440, height: 900 }, colorScheme: dark ? 'dark' : 'light', locale: zh ? 'zh-CN' : 'en-GB', timezoneId: 'Europe/Berlin', ...rest,
  });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage(), wrong: string[] = [];
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
  page.on('console', (m) => { if (m.type() === 'error' && !/Failed to load resource|net::ERR/.test(m.text())) wrong.push(`console: ${m.text()}`); });
  return { context, page, wrong };
}

/** Signs a context in without its pages: the cookie goes to the browser, the key to the storage of that origin. */
export async function enter(context: BrowserContext, url: string, token: string) {
  const answer = await context.request.post(url + '/api/v1/login', { data: { token } });
  if (!answer.ok()) throw new Error(`sign in: ${answer.status()} ${await answer.text()}`);
  const { login_key: key } = await answer.json();
  await context.addInitScript(([origin, key]) => {
    if (location.origin !== origin || localStorage.getItem('entered') === key) return; // once, not at each load
    localStorage.setItem('entered', key);
    localStorage.setItem('login-key', key);
  }, [url, key]);
}
