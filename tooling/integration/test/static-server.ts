/** A server of files and texts on the loopback interface, for pages under test. */
import { readFile } from "node:fs/promises";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

export interface StaticServer {
  /** Ends without a slash. */
  readonly url: string;
  close(): void;
}

/** Serves a directory, and `texts` by path before it. */
export async function serve(
  directory: string,
  texts: Readonly<Record<string, string>>,
): Promise<StaticServer> {
  const server: Server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const answer = async (): Promise<string | Buffer> =>
      texts[pathname] ?? (await readFile(join(directory, normalize(pathname))));
    answer().then(
      (body) => {
        response.setHeader("content-type", types[extname(pathname)] ?? "application/octet-stream");
        response.end(body);
      },
      () => {
        response.statusCode = 404;
        response.end();
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}
