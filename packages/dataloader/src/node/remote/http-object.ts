/** Files of web servers that serve ranges (RFC 9110, section 14). */
import {
  RemoteFailure,
  type RemoteObject,
  type RemoteStat,
  changed,
  passing,
} from "./remote-object.ts";

/** Which file. */
export interface HttpObjectOptions {
  readonly url: string;
  /** Sent with each request, such as an authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** In place of the global one; such an object cannot be handed to another thread. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** A file at an address. */
export function httpObject(options: HttpObjectOptions): RemoteObject {
  const { url, headers = {}, fetch: send = fetch } = options;
  const get = (start: number, end: number, more: Record<string, string>, signal: AbortSignal) =>
    send(url, {
      headers: {
        ...headers,
        "accept-encoding": "identity",
        range: `bytes=${start}-${end - 1}`,
        ...more,
      },
      signal,
    });
  return {
    name: url,
    async stat(signal) {
      // A range of one byte says the size where a HEAD may be forbidden, as with signed addresses.
      const response = await get(0, 1, {}, signal);
      await response.body?.cancel();
      const range = response.headers.get("content-range") ?? "";
      const size = /^bytes (?:\*|0-0)\/(\d+)$/.exec(range)?.[1];
      const version = versionOf(response);
      if (response.status === 416 && size === "0") return { size: 0, version };
      if (response.status === 206 && size !== undefined) return { size: Number(size), version };
      if (response.status === 206) {
        throw new RemoteFailure(`${url}: the server tells no size; bring it with fetchFile`, false);
      }
      if (response.status === 200) {
        throw new RemoteFailure(
          `${url}: the server gives whole files only, no ranges; bring it with fetchFile`,
          false,
        );
      }
      throw statusFailure(url, response);
    },
    async *range(start, end, of, signal) {
      const strong = of.version !== undefined && !of.version.startsWith("W/");
      const more: Record<string, string> = strong ? { "if-range": of.version } : {};
      const response = await get(start, end, more, signal);
      try {
        check(url, response, start, of);
      } catch (failure) {
        await response.body?.cancel();
        throw failure;
      }
      // What is longer than asked for is cut by who reads.
      if (response.body !== null) yield* response.body;
    },
    recipe:
      options.fetch === undefined
        ? { module: import.meta.url, function: "httpObject", options: { url, headers } }
        : undefined,
  };
}

function check(url: string, response: Response, start: number, of: RemoteStat): void {
  const range = response.headers.get("content-range") ?? "";
  const version = versionOf(response);
  // The whole file in answer to a range is another version of it.
  if (response.status === 200) throw changed(url, of, { version });
  const total = /^bytes \*\/(\d+)$/.exec(range)?.[1];
  if (response.status === 416 && total !== undefined)
    throw changed(url, of, { size: Number(total) });
  if (response.status !== 206) throw statusFailure(url, response);
  const [, from, size] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range) ?? [];
  if (Number(from) !== start) {
    throw new RemoteFailure(
      `${url}: asked for bytes from ${start} on, got ${range || "others"}`,
      true,
    );
  }
  const other = of.version !== undefined && version !== undefined && version !== of.version;
  if (other || (size !== "*" && Number(size) !== of.size))
    throw changed(url, of, { size: Number(size), version });
}

function versionOf(response: Response): string | undefined {
  return response.headers.get("etag") ?? response.headers.get("last-modified") ?? undefined;
}

/** For an answer with a status that is no success. */
export function statusFailure(url: string, response: Response): RemoteFailure {
  const message = `${url}: ${response.status} ${response.statusText}`.trimEnd();
  const asked = Number(response.headers.get("retry-after"));
  return new RemoteFailure(message, passing(response.status), asked > 0 ? asked : 0);
}
