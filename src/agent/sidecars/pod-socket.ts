/** The socket in the directory of one pod. Only the user of its sidecar may connect, and only so often. */
import { chmodSync, chownSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Socket, UnixSocketListener } from "bun";
import { userOfPeer } from "../../linux/unix-stream.ts";
import { Allowance } from "./allowance.ts";
import { type ConnectionMeans, SidecarConnection } from "./sidecar-connection.ts";
import type { SidecarVolume } from "./sidecar-volumes.ts";

export interface PodSocketMeans extends ConnectionMeans {
  readonly closed: (connection: SidecarConnection) => void;
}

const SOCKET_NAME = "agent.sock";
const ONLY_OWNER = 0o600;
/** A sidecar has one connection, and for a moment another one if it starts again. */
const MOST_CONNECTIONS = 4;
/** A sidecar tries again ten times a second. */
const CONNECTIONS = { burst: 100, perSecond: 20 };

export class PodSocket {
  private listener: UnixSocketListener<SidecarConnection | undefined> | undefined;
  private readonly connections = new Set<SidecarConnection>();
  private readonly allowance: Allowance;
  private readonly path: string;

  constructor(
    private readonly volume: SidecarVolume,
    private readonly means: PodSocketMeans,
  ) {
    this.path = join(volume.directory, SOCKET_NAME);
    this.allowance = new Allowance(CONNECTIONS, means.elapsed);
  }

  /** Listens if it does not yet, or if somebody has removed the socket. Throws if that is impossible. */
  listen(): void {
    if (this.listener !== undefined && existsSync(this.path)) return;
    this.stopListening();
    // Of a former agent.
    rmSync(this.path, { force: true });
    this.listener = Bun.listen<SidecarConnection | undefined>({
      unix: this.path,
      data: undefined,
      socket: {
        open: (socket) => this.open(socket),
        data: ({ data }, bytes) => data?.receive(bytes),
        drain: ({ data }) => data?.drain(),
        close: ({ data }) => this.closed(data),
        error: ({ data }) => data?.close(),
      },
    });
    chmodSync(this.path, ONLY_OWNER);
    chownSync(this.path, this.volume.user, this.volume.user);
  }

  /** Ends what has taken too long. */
  checkTime(): void {
    for (const connection of this.connections) connection.checkTime();
  }

  close(): void {
    this.stopListening();
    for (const connection of this.connections) connection.close();
  }

  private open(socket: Socket<SidecarConnection | undefined>): void {
    const connection = new SidecarConnection(socket, this.means);
    socket.data = connection;
    this.connections.add(connection);
    // Whoever floods the socket finds it gone until the next look at it.
    if (!this.allowance.take()) {
      this.stopListening();
      connection.refuse("too many");
    } else if (userOfPeer(descriptorOf(socket)) !== this.volume.user) connection.refuse("other user");
    else if (this.connections.size > MOST_CONNECTIONS) connection.refuse("too many");
  }

  private closed(connection: SidecarConnection | undefined): void {
    if (connection === undefined) return;
    connection.ended();
    this.connections.delete(connection);
    this.means.closed(connection);
  }

  private stopListening(): void {
    this.listener?.stop(false);
    this.listener = undefined;
  }
}

/** Bun has it on all its sockets, and its types do not. */
function descriptorOf(socket: Socket<unknown>): number {
  return "fd" in socket && typeof socket.fd === "number" ? socket.fd : -1;
}
