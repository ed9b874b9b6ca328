/** The socket in the directory of one pod. Only the user of its sidecar may connect, if it is known, and only so often. */
import { chmodSync, chownSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Socket, UnixSocketListener } from "bun";
import { SocketFile } from "../../grpc/socket-file.ts";
import { userOfPeer } from "../../linux/unix-stream.ts";
import { FRAMES, SyncConnection } from "../earlier-sidecars/sync-connection.ts";
import { RateLimit } from "./rate-limit.ts";
import { type ConnectionOptions, type FedConnection, SidecarConnection } from "./sidecar-connection.ts";
import type { SidecarVolume } from "./sidecar-volumes.ts";

export interface PodSocketOptions extends ConnectionOptions {
  readonly closed: (connection: FedConnection) => void;
}

const SOCKET_NAME = "agent.sock";
const ONLY_OWNER = 0o600;
/** Of sidecars whose user is not known. */
const SYNC_SOCKET_NAME = "socket";
const EVERYBODY = 0o777;
/** A sidecar has one connection, and for a moment another one if it starts again. */
const MOST_CONNECTIONS = 4;
/** A sidecar tries again ten times a second. */
const CONNECTIONS = { burst: 100, perSecond: 20 };

export class PodSocket {
  private listener: UnixSocketListener<FedConnection | undefined> | undefined;
  private file: SocketFile | undefined;
  private readonly connections = new Set<FedConnection>();
  private readonly connects: RateLimit;
  private readonly frames: RateLimit;
  private readonly path: string;

  constructor(
    private readonly volume: SidecarVolume,
    private readonly options: PodSocketOptions,
  ) {
    const { directory, user } = volume;
    this.path = join(directory, user === undefined ? SYNC_SOCKET_NAME : SOCKET_NAME);
    this.connects = new RateLimit(CONNECTIONS, options.elapsed);
    this.frames = new RateLimit(FRAMES, options.elapsed);
  }

  /** Listens if it does not yet, or if somebody has removed or replaced the socket. Throws if that is impossible. */
  listen(): void {
    if (this.listener !== undefined && this.file?.isThere === true) return;
    this.stopListening();
    // Of the previous agent, or of the pod.
    rmSync(this.path, { force: true });
    const { user } = this.volume;
    if (user === undefined) this.listenForAll();
    else this.listenFor(user);
    this.file = new SocketFile(this.path);
  }

  private listenFor(user: number): void {
    this.listenAt(this.path);
    chmodSync(this.path, ONLY_OWNER);
    chownSync(this.path, user, user);
  }

  /** A pod may write to this directory: what it puts in place of the socket meanwhile must not get its mode. */
  private listenForAll(): void {
    const { directory } = this.volume;
    const hidden = join(dirname(dirname(directory)), `.${basename(directory)}.socket`);
    rmSync(hidden, { force: true });
    this.listenAt(hidden);
    chmodSync(hidden, EVERYBODY);
    renameSync(hidden, this.path);
  }

  private listenAt(path: string): void {
    this.listener = Bun.listen<FedConnection | undefined>({
      unix: path,
      data: undefined,
      socket: {
        open: (socket) => this.open(socket),
        data: ({ data }, bytes) => data?.receive(bytes),
        drain: ({ data }) => data?.drain(),
        close: ({ data }) => this.closed(data),
        error: ({ data }) => data?.close(),
      },
    });
  }

  /** Ends what has taken too long. */
  checkTime(): void {
    for (const connection of this.connections) connection.checkTime();
  }

  close(): void {
    this.stopListening();
    for (const connection of this.connections) connection.close();
  }

  private open(socket: Socket<FedConnection | undefined>): void {
    const { user } = this.volume;
    const connection =
      user === undefined
        ? new SyncConnection(socket, this.options, this.volume, this.frames)
        : new SidecarConnection(socket, this.options);
    socket.data = connection;
    this.connections.add(connection);
    // A client that floods the socket finds it gone until it is checked again.
    if (!this.connects.take()) {
      this.stopListening();
      connection.refuse("too many");
    } else if (user !== undefined && userOfPeer(descriptorOf(socket)) !== user) connection.refuse("other user");
    else if (this.connections.size > MOST_CONNECTIONS) connection.refuse("too many");
  }

  private closed(connection: FedConnection | undefined): void {
    if (connection === undefined) return;
    connection.ended();
    this.connections.delete(connection);
    this.options.closed(connection);
  }

  private stopListening(): void {
    if (this.listener === undefined) return;
    // The runtime removes only the name that it was created with.
    this.file?.remove();
    this.file = undefined;
    this.listener.stop(false);
    this.listener = undefined;
  }
}

/** Bun has it on all its sockets, and its types do not. */
function descriptorOf(socket: Socket<unknown>): number {
  return "fd" in socket && typeof socket.fd === "number" ? socket.fd : -1;
}
