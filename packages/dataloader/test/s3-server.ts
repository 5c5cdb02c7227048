/** A store that speaks the S3 protocol as far as reading goes: signatures, ranges, conditions, errors. */
import { createHash, createHmac } from "node:crypto";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";

export interface S3Server {
  readonly endpoint: string;
  readonly objects: Map<string, Buffer>;
  readonly requests: string[];
  /** Answers of the next requests; after them the store answers as it should. */
  script: ((response: ServerResponse) => void)[];
  close(): void;
}

export const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG" };
export const region = "us-west-2";

/** An error in the protocol's form. */
export function xmlError(status: number, code: string) {
  return (response: ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/xml" });
    response.end(
      response.req.method === "HEAD"
        ? undefined
        : `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`,
    );
  };
}

export async function startS3Server(): Promise<S3Server> {
  const objects = new Map<string, Buffer>();
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.range ?? ""}`.trim());
    const scripted = store.script.shift();
    if (scripted !== undefined) scripted(response);
    else if (!isSigned(request)) xmlError(403, "SignatureDoesNotMatch")(response);
    else answer(objects, request, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const store: S3Server = {
    endpoint: `http://127.0.0.1:${port}`,
    objects,
    requests,
    script: [],
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return store;
}

function answer(
  objects: ReadonlyMap<string, Buffer>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const key = decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname.slice(1));
  const object = objects.get(key);
  if (object === undefined) return xmlError(404, "NoSuchKey")(response);
  const tag = `"${createHash("md5").update(object).digest("hex")}"`;
  const wanted = request.headers["if-match"];
  if (wanted !== undefined && wanted !== tag) return xmlError(412, "PreconditionFailed")(response);
  const headers = { etag: tag, "accept-ranges": "bytes" };
  if (request.method === "HEAD") {
    response.writeHead(200, { ...headers, "content-length": object.length }).end();
    return;
  }
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  if (Number(from) >= object.length) return xmlError(416, "InvalidRange")(response);
  const part = object.subarray(Number(from), Number(to) + 1);
  response.writeHead(206, {
    ...headers,
    "content-length": part.length,
    "content-range": `bytes ${from}-${Number(from) + part.length - 1}/${object.length}`,
  });
  response.end(part);
}

/** AWS Signature Version 4, recomputed from the request (AWS General Reference, "Signing requests"). */
function isSigned(request: IncomingMessage): boolean {
  const [, scope = "", names = "", signature = ""] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)$/.exec(
      request.headers.authorization ?? "",
    ) ?? [];
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://x");
  const query = [...searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join("&");
  const headers = names
    .split(";")
    .map((name) => `${name}:${String(request.headers[name]).trim().replace(/ +/g, " ")}\n`)
    .join("");
  const payload = String(request.headers["x-amz-content-sha256"]);
  const canonical = [request.method, pathname, query, headers, names, payload].join("\n");
  const digest = createHash("sha256").update(canonical).digest("hex");
  const text = ["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, digest].join("\n");
  const hmac = (key: string | Buffer, data: string): Buffer =>
    createHmac("sha256", key).update(data).digest();
  const key = scope
    .split("/")
    .reduce<string | Buffer>(
      (secret, part) => hmac(secret, part),
      `AWS4${credentials.secretAccessKey}`,
    );
  return hmac(key, text).toString("hex") === signature;
}
