import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type Server, type Socket, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Endpoint } from "@trireme/runtime/driver";
import {
  type Agent,
  type Connection,
  type Role,
  type Security,
  dial,
  listen,
  monotonicClock,
  openConnection,
} from "@trireme/runtime/node";
import { afterEach, describe, expect, it } from "vitest";
import { newJob } from "./job.ts";

const token = "a token that only tests have";

interface End {
  readonly connection: Connection | undefined;
  readonly messages: string[];
  readonly closed: Promise<string | undefined>;
}

function end(socket: Socket, role: Role, security: Security, more: object = {}): End {
  const messages: string[] = [];
  let opened: Connection | undefined;
  const closed = new Promise<string | undefined>((resolve) => {
    openConnection(socket, {
      role,
      run: "r",
      security,
      open: (connection) => {
        opened = connection;
      },
      message: (text) => messages.push(text),
      closed: (reason) => resolve(reason?.message),
      ...more,
    });
  });
  return {
    get connection() {
      return opened;
    },
    messages,
    closed,
  };
}

const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** A driver's end for every connection. */
async function serve(
  security: Security,
  more: object = {},
): Promise<{ endpoint: Endpoint; ends: End[] }> {
  const ends: End[] = [];
  const { server, endpoint } = await listen({}, security, (socket) => {
    sockets.push(socket);
    ends.push(end(socket, "driver", security, more));
  });
  servers.push(server);
  return { endpoint, ends };
}

async function call(endpoint: Endpoint, security: Security, more: object = {}): Promise<End> {
  const socket = await dial(endpoint, security, 5, monotonicClock);
  sockets.push(socket);
  return end(socket, "agent", security, more);
}

describe("a connection", () => {
  it("carries messages both ways once both have proved that they have the token", async () => {
    const { endpoint, ends } = await serve({ token });
    const agent = await call(endpoint, { token });
    await expect
      .poll(() => ends[0]?.connection !== undefined && agent.connection !== undefined)
      .toBe(true);
    for (let i = 0; i < 100; i++) agent.connection!.send(`message ${i} ${"é".repeat(i)}`);
    ends[0]!.connection!.send("back");
    await expect.poll(() => ends[0]!.messages.length).toBe(100);
    expect(ends[0]!.messages[99]).toBe(`message 99 ${"é".repeat(99)}`);
    await expect.poll(() => agent.messages).toEqual(["back"]);
    agent.connection!.close();
    expect(await ends[0]!.closed).toBeUndefined();
  });

  it.each([
    [
      "another token",
      { security: { token: "another token, long enough" } },
      "does not have the token",
    ],
    ["another run", { run: "other" }, 'it is of the run "other", this is "r"'],
  ])("is refused to a peer with %s", async (_, more, message) => {
    const { endpoint, ends } = await serve({ token });
    const agent = await call(endpoint, { token }, more);
    await agent.closed;
    expect(await ends[0]!.closed).toContain(message);
    expect(ends[0]!.connection).toBeUndefined();
    expect(agent.connection).toBeUndefined();
  });

  it("is refused by an agent to a driver that cannot prove itself", async () => {
    const { endpoint } = await serve({ token: "a token of an impostor" });
    const agent = await call(endpoint, { token });
    await agent.closed;
    expect(agent.connection).toBeUndefined();
  });

  it.each([
    ["what is no frame", Buffer.from("GET / HTTP/1.1\r\n\r\n"), "at most 1024 are taken"],
    ["a frame above the limit", Buffer.from([0, 0, 4, 1]), "a message of 1025 bytes"],
    ["JSON of something else", frame('{"hello":1}'), "not of this protocol or version"],
    [
      "an older version",
      frame('{"protocol":"trireme-driver/0","run":"r","nonce":"00"}'),
      "version",
    ],
    ["no JSON", frame("x"), "not of this protocol or version"],
    ["nothing", Buffer.alloc(0), "no complete handshake within 0.2 s"],
  ])("is refused to a stranger who says %s", async (_, bytes, message) => {
    const { endpoint, ends } = await serve({ token }, { handshakeDeadline: 0.2 });
    const socket = connect(endpoint.port, endpoint.address);
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.write(bytes);
    await expect.poll(() => ends.length).toBe(1);
    expect(await ends[0]!.closed).toContain(message);
  });

  it("ends at a message above the limit", async () => {
    const { endpoint, ends } = await serve({ token }, { messageLimit: 1000 });
    const agent = await call(endpoint, { token });
    await expect.poll(() => agent.connection !== undefined).toBe(true);
    agent.connection!.send("x".repeat(1000));
    agent.connection!.send("x".repeat(1001));
    expect(await ends[0]!.closed).toContain("a message of 1017 bytes, but at most 1016 are taken");
    expect(ends[0]!.messages).toEqual(["x".repeat(1000)]);
  });

  it.each(["changed", "left out", "played twice"])(
    "ends at a message that is %s on the way",
    async (what) => {
      const { endpoint, ends } = await serve({ token });
      // One that stands between, and does something to the third frame of an agent: the first message.
      const between = createServer((near) => {
        const far = connect(endpoint.port, endpoint.address);
        sockets.push(near, far);
        far.pipe(near);
        let held = Buffer.alloc(0);
        let frames = 0;
        near.on("data", (piece: Buffer) => {
          held = Buffer.concat([held, piece]);
          while (held.length >= 4 && held.length >= 4 + held.readUInt32BE()) {
            const whole = Buffer.from(held.subarray(0, 4 + held.readUInt32BE()));
            held = held.subarray(whole.length);
            if (++frames !== 3) far.write(whole);
            else if (what === "changed") {
              whole[whole.length - 1]! ^= 1;
              far.write(whole);
            } else if (what === "played twice") far.write(Buffer.concat([whole, whole]));
          }
        });
      });
      servers.push(between);
      await new Promise<void>((resolve) => {
        between.listen(0, "127.0.0.1", resolve);
      });
      const address = between.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      const agent = await call({ address: "127.0.0.1", port }, { token });
      await expect.poll(() => agent.connection !== undefined).toBe(true);
      agent.connection!.send("one");
      agent.connection!.send("two");
      expect(await ends[0]!.closed).toContain("it was changed on the way");
      expect(ends[0]!.messages).toEqual(what === "played twice" ? ["one"] : []);
    },
  );

  it("that an agent is closed in while it shakes hands is closed behind it", async () => {
    const job = newJob();
    const dropped = new Promise<string | undefined>((resolve, reject) => {
      listen({}, { token }, (socket) => {
        sockets.push(socket);
        // The driver answers late: by then the agent has said hello and is gone.
        socket.once("readable", () => {
          void agent
            .close()
            .then(() => end(socket, "driver", { token }, { run: job.run }).closed)
            .then(resolve, reject);
        });
      }).then(({ server, endpoint }) => {
        servers.push(server);
        agent = job.agent(0, endpoint);
      }, reject);
    });
    let agent: Agent;
    expect(await dropped).toBeUndefined();
    job.clear();
  });

  it("needs a token or certificates, and a token that cannot be guessed", async () => {
    const job = newJob();
    await expect(job.driver({ security: {} })).rejects.toThrow("need a shared token or TLS");
    await expect(job.driver({ security: { token: "short" } })).rejects.toThrow(
      "the token has 5 bytes, but at least 16 are needed",
    );
    job.clear();
  });
});

function frame(text: string): Buffer {
  const out = Buffer.alloc(4 + Buffer.byteLength(text));
  out.writeUInt32BE(out.length - 4);
  out.write(text, 4);
  return out;
}

const program = "openssl";
const noOpenssl = spawnSync(program, ["version"]).error !== undefined;
describe.skipIf(noOpenssl)("mutual TLS", () => {
  it("drives a run, and refuses agents whose certificate is of another authority", async () => {
    const directory = mkdtempSync(join(tmpdir(), "trireme-tls-"));
    const openssl = (...args: string[]): void => {
      const { status, stderr } = spawnSync(program, args, { cwd: directory, encoding: "utf8" });
      if (status !== 0) throw new Error(stderr);
    };
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    for (const authority of ["ours", "theirs"]) {
      openssl(
        "req",
        "-x509",
        ...key,
        "-keyout",
        `${authority}.key`,
        "-out",
        `${authority}.pem`,
        "-subj",
        `/CN=${authority}`,
      );
    }
    const identity = (name: string, authority: string): Security => {
      const host = `${authority}-${name}`;
      const san = ["-addext", "subjectAltName=IP:127.0.0.1"];
      openssl(
        "req",
        "-x509",
        ...key,
        "-keyout",
        `${host}.key`,
        "-out",
        `${host}.pem`,
        "-subj",
        `/CN=${name}`,
        "-CA",
        `${authority}.pem`,
        "-CAkey",
        `${authority}.key`,
        ...san,
      );
      const read = (file: string): string => readFileSync(join(directory, file), "utf8");
      return {
        tls: {
          key: read(`${host}.key`),
          certificate: read(`${host}.pem`),
          authority: read("ours.pem"),
        },
      };
    };
    const job = newJob({ steps: 3 });
    try {
      const driver = await job.driver({ security: identity("driver", "ours") });
      const stranger = job.agent(0, driver.endpoint, {
        security: identity("agent", "theirs"),
        lostDeadline: 0.5,
      });
      expect((await stranger.result).reason).toContain("no driver at");
      const security = identity("agent", "ours");
      const agents = [0, 1].map((host) => job.agent(host, driver.endpoint, { security }));
      expect(await driver.result).toMatchObject({ ok: true, step: 3 });
      await Promise.all(agents.map((agent) => agent.result));
    } finally {
      job.clear();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

it("nothing listens beyond loopback unless told", async () => {
  const job = newJob();
  const driver = await job.driver();
  expect(driver.endpoint.address).toBe("127.0.0.1");
  await driver.close();
  await expect(driver.result).rejects.toThrow("was closed before the run had ended");
  job.clear();
});
