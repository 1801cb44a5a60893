import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

// A real cluster: `go-crontab dev` with a database, nodes and a data folder of its own.

export const wait = (ms: number) => new Promise((ok) => setTimeout(ok, ms));

/** Asks until it is so. */
export async function until<T>(what: string, ask: () => Promise<T | false | undefined> | T | false | undefined, limit = 40_000): Promise<T> {
  const end = Date.now() + limit;
  for (let last: unknown; ;) {
    try {
      const got = await ask();
      if (got) return got;
    } catch (err) { last = err; }
    if (Date.now() > end) throw new Error(`it did not come to be within ${limit / 1000} s: ${what}${last ? ` (${last})` : ''}`);
    await wait(150);
  }
}

/** A port with two more behind it that nobody has. */
async function freePort(): Promise<number> {
  const free = (port: number) => new Promise<number>((ok) => {
    const s = createServer();
    s.once('error', () => ok(0));
    s.listen(port, '127.0.0.1', () => { const p = (s.address() as { port: number }).port; s.close(() => ok(p)); });
  });
  for (;;) {
    const p = await free(0);
    if (p < 65_000 && (await free(p + 1)) && (await free(p + 2))) return p;
  }
}

export class Cluster {
  private process!: ChildProcess;
  private text = '';
  token = '';
  urls: string[] = [];

  private constructor(private readonly home: string, readonly nodes: number) {}

  static async start(nodes = 3, more: string[] = []): Promise<Cluster> {
    const c = new Cluster(mkdtempSync(join(tmpdir(), 'go-crontab-page-')), nodes);
    const port = await freePort(), data = join(c.home, 'data');
    c.urls = Array.from({ length: nodes }, (_, i) => `http://127.0.0.1:${port + i}`);
    c.process = spawn(resolve('..', 'bin', 'go-crontab'), ['dev', '--data', data, '--port', String(port), '--nodes', String(nodes), '--session-expiry', '5s', '--restart-after', '12s', ...more], { env: { ...process.env, HOME: c.home }, stdio: ['ignore', 'pipe', 'pipe'] });
    c.process.stdout!.on('data', (d) => { c.text += d; });
    c.process.stderr!.on('data', (d) => { c.text += d; });
    process.once('exit', () => c.process.kill('SIGINT'));
    try {
      await until('all nodes are ready', async () => {
        if (c.process.exitCode !== null) return false;
        for (const u of c.urls) if (!(await fetch(u + '/readyz')).ok) return false;
        return true;
      }, 90_000);
      c.token = readFileSync(join(data, 'token'), 'utf8').trim();
    } catch (err) {
      await c.stop();
      throw new Error(`${err}\n${c.text.slice(-3000)}`);
    }
    return c;
  }

  /** Asks the API as the administrator. */
  async api<T = any>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const r = await fetch(this.urls[0] + path, { method, headers: { Authorization: `Bearer ${this.token}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers }, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await r.text();
    if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  job = (spec: Record<string, unknown>) => this.api<{ id: string; version: number }>('PUT', `/api/v1/apps/${encodeURIComponent(String(spec.app ?? 'default'))}/jobs/${encodeURIComponent(String(spec.name))}`, spec);

  /** The process of a node, by its number from 0. */
  async pid(node: number): Promise<number> {
    const { sessions } = await this.api('GET', '/api/v1/cluster');
    return sessions.find((s: { address: string }) => s.address === this.urls[node]).pid;
  }

  async stop() {
    if (this.process.exitCode === null) {
      const gone = new Promise((ok) => this.process.once('exit', ok));
      this.process.kill('SIGINT');
      await Promise.race([gone, wait(30_000)]);
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
  }
}
