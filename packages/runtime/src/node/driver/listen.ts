/** Opening the sockets of driver and agents, plain or TLS. Nothing listens beyond loopback unless told. */
import { type Server, type Socket, connect, createServer } from "node:net";
import { TLSSocket, connect as connectTls, createServer as createTlsServer } from "node:tls";
import { TriremeError, type Seconds } from "@trireme/core";
import type { Endpoint } from "../../driver/launch.ts";
import type { Clock } from "./clock.ts";
import type { Security } from "./security.ts";

export interface ListenOptions {
  /** Default 127.0.0.1: this machine only. */
  readonly address?: string;
  /** Default 0: any that is free. */
  readonly port?: number;
}

/** A server that hands over its connections, secured where there are TLS identities. */
export async function listen(
  { address = "127.0.0.1", port = 0 }: ListenOptions,
  { tls }: Security,
  accept: (socket: Socket) => void,
): Promise<{ readonly server: Server; readonly endpoint: Endpoint }> {
  const server =
    tls === undefined
      ? createServer(accept)
      : createTlsServer(
          {
            key: tls.key,
            cert: tls.certificate,
            ca: tls.authority,
            requestCert: true,
            rejectUnauthorized: true,
            minVersion: "TLSv1.3",
          },
          accept,
        );
  // A peer whose certificate is refused is told so by TLS; there is nothing more to do for it.
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, resolve);
  }).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("LISTEN", `cannot listen at ${address}:${port}: ${why}`, { cause });
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") {
    throw new TriremeError("LISTEN", `${address}:${port} is not an address of a network`);
  }
  return { server, endpoint: { address, port: bound.port } };
}

/** A socket connected to an endpoint; rejects with the reason, and after the deadline. */
export function dial(
  { address, port }: Endpoint,
  { tls }: Security,
  deadline: Seconds,
  clock: Clock,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket =
      tls === undefined
        ? connect(port, address)
        : connectTls({
            host: address,
            port,
            key: tls.key,
            cert: tls.certificate,
            ca: tls.authority,
            minVersion: "TLSv1.3",
            ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
          });
    const fail = (reason: string, cause?: Error): void => {
      cancel();
      socket.destroy();
      reject(new TriremeError("CONNECTION", `driver at ${address}:${port}: ${reason}`, { cause }));
    };
    const cancel = clock.after(deadline, () => fail(`no connection within ${deadline} s`));
    const failed = (cause: Error): void => fail(cause.message, cause);
    socket.once("error", failed);
    socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", () => {
      cancel();
      socket.off("error", failed);
      resolve(socket);
    });
  });
}

/** A port that is free at an address now. */
export async function freePort(address: string): Promise<number> {
  const { server, endpoint } = await listen({ address }, {}, (socket) => socket.destroy());
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return endpoint.port;
}
