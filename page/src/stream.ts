import { credentials } from './api';

/** A node writes something every 15 s. A connection that is silent for so long has died, which nobody else may say. */
const silence = 45_000;

type Handlers = Record<string, (data: any) => void>;

/**
 * Reads a stream of events and connects again when it breaks, as EventSource does. EventSource cannot be used: it cannot
 * send the key of the sign-in. `failed` hears of each break; `closed` says that the node refused the stream, so that
 * nobody connects again. Returns how to close it.
 */
export function openStream(path: string, on: Handlers, failed: (closed: boolean) => void): () => void {
  let stopped = false, one = new AbortController();
  const place = { id: '', retry: 3000 };
  let timer = 0;

  const read = async () => {
    const mine = (one = new AbortController());
    let watch = 0;
    const alive = () => { clearTimeout(watch); watch = window.setTimeout(() => mine.abort(), silence); };
    alive();
    try {
      const response = await fetch(path, {
        headers: { Accept: 'text/event-stream', ...credentials(), ...(place.id && { 'Last-Event-ID': place.id }) },
        credentials: 'same-origin', cache: 'no-store', signal: mine.signal,
      });
      if (!response.ok || !response.body || !response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
        failed(true);
        return;
      }
      await follow(response.body.getReader(), on, place, alive);
    } catch { /* the connection broke or died, or was closed here */ } finally { clearTimeout(watch); }

    if (stopped) return;
    failed(false);
    if (!stopped) timer = window.setTimeout(read, place.retry);
  };

  void read();
  return () => { stopped = true; one.abort(); clearTimeout(timer); };
}

/** Hands on the messages of one connection until it ends. */
async function follow(reader: ReadableStreamDefaultReader<Uint8Array>, on: Handlers, place: { id: string; retry: number }, alive: () => void) {
  const decoder = new TextDecoder();
  let rest = '', event = '', data: string[] = [];

  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop()!;

    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) on[event]?.(JSON.parse(data.join('\n')));
        event = '';
        data = [];
        continue;
      }
      const [, name, text] = /^([^:]*):? ?(.*)$/s.exec(line)!;
      if (name === 'event') event = text;
      else if (name === 'data') data.push(text);
      else if (name === 'id') place.id = text;
      else if (name === 'retry') place.retry = Number(text) || place.retry;
    }
  }
}
