/**
 * A small server that speaks the S3 protocol, path style, from memory: objects with ranges, listings by
 * prefix and delimiter in pages, several deletions at once, multipart uploads. It checks what a client
 * says of its bytes, and fails where a test tells it to.
 */
import { createHash } from "node:crypto";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { crc32 } from "node:zlib";

/** Whether a request fails, and whether it has had its effect by then. */
export type RequestFault = "before" | "after" | undefined;

interface Pending {
  readonly key: string;
  readonly parts: Map<number, Buffer>;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

export class S3Server {
  readonly bucket = "trireme";
  readonly objects = new Map<string, Buffer>();
  readonly uploads = new Map<string, Pending>();
  /** "PUT runs/a/x", one a request. */
  readonly log: string[] = [];
  /** Entries of a listing's page. */
  pageSize = 1000;
  /** Asked before each request, with its number from 0 on. */
  fault: (request: number) => RequestFault = () => undefined;
  readonly #server: Server;
  #uploadCount = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  static async start(): Promise<S3Server> {
    const server = new S3Server();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get endpoint(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? "/", this.endpoint);
    const [, bucket, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    const key = rest.join("/");
    const number = this.log.push(`${request.method} ${key}${url.search}`) - 1;
    const fault = this.fault(number);
    let answer: Answer = failure(500, "InternalError", "the test says so");
    if (fault !== "before") {
      const body = plain(Buffer.concat(chunks), request.headers["content-encoding"]);
      const refused = refusal(request, body, bucket === this.bucket);
      answer = refused ?? this.#answer(request, key, url.searchParams, body);
    }
    if (fault === "after") answer = failure(500, "InternalError", "the test says so");
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  #answer(request: IncomingMessage, key: string, query: URLSearchParams, body: Buffer): Answer {
    const id = query.get("uploadId");
    switch (request.method ?? "") {
      case "PUT":
        return id === null ? this.#put(key, body) : this.#part(id, query, body);
      case "GET":
        if (key === "") return query.has("uploads") ? this.#unfinished(query) : this.#list(query);
        return this.#get(key, request.headers.range);
      case "POST":
        if (query.has("delete")) return this.#delete(body.toString());
        if (query.has("uploads")) return this.#begin(key);
        return this.#complete(id ?? "", body.toString());
      case "DELETE":
        if (id !== null) this.uploads.delete(id);
        else this.objects.delete(key);
        return { status: 204 };
    }
    return failure(405, "MethodNotAllowed", "not spoken here");
  }

  #put(key: string, body: Buffer): Answer {
    this.objects.set(key, body);
    return { status: 200, headers: { ETag: etag(body) } };
  }

  #get(key: string, range: string | undefined): Answer {
    const object = this.objects.get(key);
    if (object === undefined) return failure(404, "NoSuchKey", "The key does not exist.");
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
    if (from === undefined) return { status: 200, body: object };
    if (Number(from) >= object.length)
      return failure(416, "InvalidRange", "The range is not satisfiable.");
    const last = Math.min(object.length - 1, to === "" ? Infinity : Number(to));
    const headers = { "Content-Range": `bytes ${from}-${last}/${object.length}` };
    return { status: 206, headers, body: object.subarray(Number(from), last + 1) };
  }

  #list(query: URLSearchParams): Answer {
    const [prefix, delimiter] = [query.get("prefix") ?? "", query.get("delimiter") ?? ""];
    const after = query.get("continuation-token") ?? "";
    const entries = new Map<string, string>();
    for (const [key, object] of [...this.objects].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (!key.startsWith(prefix)) continue;
      const cut = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      const name = cut === -1 ? key : key.slice(0, cut + 1);
      const size = `<Size>${object.length}</Size><ETag>${etag(object)}</ETag>`;
      const entry =
        cut === -1
          ? `<Contents><Key>${name}</Key>${size}</Contents>`
          : `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`;
      if (name > after) entries.set(name, entry);
    }
    const page = [...entries].slice(0, this.pageSize);
    const more = entries.size > page.length;
    const token = more ? `<NextContinuationToken>${page.at(-1)![0]}</NextContinuationToken>` : "";
    const listed = page.map(([, entry]) => entry).join("");
    const truncated = `<IsTruncated>${more}</IsTruncated>`;
    return xml(`<ListBucketResult>${truncated}${token}${listed}</ListBucketResult>`);
  }

  #delete(body: string): Answer {
    const keys = [...body.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!);
    if (keys.length > 1000) return failure(400, "MalformedXML", "more than 1000 keys");
    for (const key of keys) this.objects.delete(key);
    return xml("<DeleteResult></DeleteResult>");
  }

  #begin(key: string): Answer {
    const id = `upload-${++this.#uploadCount}`;
    this.uploads.set(id, { key, parts: new Map() });
    return xml(
      `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  #part(id: string, query: URLSearchParams, body: Buffer): Answer {
    const upload = this.uploads.get(id);
    if (upload === undefined) return failure(404, "NoSuchUpload", "no such upload");
    upload.parts.set(Number(query.get("partNumber")), body);
    return { status: 200, headers: { ETag: etag(body) } };
  }

  #complete(id: string, body: string): Answer {
    const upload = this.uploads.get(id);
    if (upload === undefined) return failure(404, "NoSuchUpload", "no such upload");
    const numbers = [...body.matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(([, n]) =>
      Number(n),
    );
    const tags = [...body.matchAll(/<ETag>([^<]*)<\/ETag>/g)].map(([, tag]) =>
      tag!.replaceAll("&quot;", '"'),
    );
    const parts = numbers.map((number) => upload.parts.get(number));
    if (parts.some((part, i) => part === undefined || etag(part) !== tags[i]))
      return failure(400, "InvalidPart", "a part is missing or another");
    const whole = parts.filter((part) => part !== undefined);
    if (whole.slice(0, -1).some((part) => part.length < 5 * 2 ** 20))
      return failure(400, "EntityTooSmall", "a part is below 5 MiB");
    this.objects.set(upload.key, Buffer.concat(whole));
    this.uploads.delete(id);
    return xml(
      `<CompleteMultipartUploadResult><Key>${upload.key}</Key></CompleteMultipartUploadResult>`,
    );
  }

  #unfinished(query: URLSearchParams): Answer {
    const prefix = query.get("prefix") ?? "";
    const after = query.get("upload-id-marker") ?? "";
    const all = [...this.uploads].filter(([id, { key }]) => key.startsWith(prefix) && id > after);
    const page = all.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, this.pageSize);
    const listed = page
      .map(([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`)
      .join("");
    const more = all.length > page.length;
    const [lastId, last] = page.at(-1) ?? [];
    const next = more
      ? `<NextKeyMarker>${last!.key}</NextKeyMarker><NextUploadIdMarker>${lastId}</NextUploadIdMarker>`
      : "";
    return xml(
      `<ListMultipartUploadsResult><IsTruncated>${more}</IsTruncated>${next}${listed}</ListMultipartUploadsResult>`,
    );
  }
}

/** What is wrong with a request before it is looked at. */
function refusal(request: IncomingMessage, body: Buffer, known: boolean): Answer | undefined {
  if (!known) return failure(404, "NoSuchBucket", "The bucket does not exist.");
  if (request.headers.authorization?.startsWith("AWS4-HMAC-SHA256 ") !== true)
    return failure(403, "AccessDenied", "the request is not signed");
  const said = request.headers["x-amz-checksum-crc32"];
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(body));
  if (said !== undefined && said !== bytes.toString("base64"))
    return failure(400, "BadDigest", "the checksum differs");
  return undefined;
}

/** Takes the framing of a streamed body away: "<hex size>…\r\n<bytes>\r\n", ended by a chunk of 0. */
function plain(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding?.includes("aws-chunked") !== true) return body;
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const end = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.subarray(at, end).toString(), 16);
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(body.subarray(end + 2, end + 2 + size));
    at = end + 4 + size;
  }
}

function etag(body: Buffer): string {
  return `"${createHash("md5").update(body).digest("hex")}"`;
}

function xml(body: string): Answer {
  const headers = { "Content-Type": "application/xml" };
  return { status: 200, headers, body: `<?xml version="1.0" encoding="UTF-8"?>${body}` };
}

function failure(status: number, code: string, message: string): Answer {
  const error = `<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return { ...xml(error), status };
}
