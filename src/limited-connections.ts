/**
 * Which connections of a server stay open: no more than its limits allow, and none longer than it may. Each server of the
 * product has one of these.
 *
 *   opened ──> waits for its request ──> in work ──> replied ──> closed
 *                 └──────── may be closed for a newer one ──┘
 *
 * Whoever holds all the connections that a server accepts would close it for others. So a new connection takes the place of
 * the oldest that is not in work: a client that sends its request at once is served, however many clients wait.
 */
import { readFileSync } from "node:fs";
import { SYSTEM_TIMERS, type Timers } from "./timers.ts";

export interface ConnectionLimits {
  readonly most: number;
  /** Of one peer, if peers can be told apart; as many as of all if absent. */
  readonly mostOfPeer?: number;
  /** Whose client has not closed them after the reply, which the kernel may still hold; as many as of all if absent. */
  readonly mostReplied?: number;
  /** Until the request is complete; no limit if absent. */
  readonly requestMilliseconds?: number;
  /** Until the client has closed the connection after the reply; no limit if absent. */
  readonly replyMilliseconds?: number;
}

/** So many, or a share of the descriptors that this process may have, if that is less: its work needs some, too. */
export function withinDescriptors(most: number, share: number): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 1024);
  return Math.min(most, Math.floor(limit * share));
}

/** Connections that are counted together; those that may be closed for another one, the oldest first. */
interface Group<Connection> {
  readonly all: Set<Connection>;
  readonly idle: Set<Connection>;
}

interface Admitted<Connection> {
  readonly peer: string;
  readonly groups: readonly Group<Connection>[];
  cancel: () => void;
}

export class LimitedConnections<Connection> {
  private readonly admitted = new Map<Connection, Admitted<Connection>>();
  private readonly everybody: Group<Connection> = newGroup();
  private readonly replied: Group<Connection> = newGroup();
  private readonly peers = new Map<string, Group<Connection>>();

  /** `end`: closes a connection; `left()` may be called by it, or later. */
  constructor(
    private readonly limits: ConnectionLimits,
    private readonly end: (connection: Connection) => void,
    private readonly timers: Pick<Timers, "after"> = SYSTEM_TIMERS,
  ) {}

  get size(): number {
    return this.admitted.size;
  }

  /** Returns `false` if all places are taken by connections in work: the server closes this one. `peer`: "" if it is unknown. */
  admit(connection: Connection, peer = ""): boolean {
    const { most, mostOfPeer = most, requestMilliseconds } = this.limits;
    const ofPeer = this.peers.get(peer) ?? newGroup();
    if (peer !== "" && !this.makeRoom(ofPeer, mostOfPeer)) return false;
    if (!this.makeRoom(this.everybody, most)) return false;
    if (peer !== "") this.peers.set(peer, ofPeer);
    const groups = peer === "" ? [this.everybody] : [this.everybody, ofPeer];
    const admitted: Admitted<Connection> = { peer, groups, cancel: () => {} };
    this.admitted.set(connection, admitted);
    for (const { all, idle } of groups) {
      all.add(connection);
      idle.add(connection);
    }
    this.endAfter(connection, admitted, requestMilliseconds);
    return true;
  }

  /** The request is complete: the connection is not closed for another one, and not by a limit of time, before the reply. */
  begin(connection: Connection): void {
    const admitted = this.admitted.get(connection);
    if (admitted === undefined) return;
    for (const { idle } of admitted.groups) idle.delete(connection);
    for (const set of [this.replied.all, this.replied.idle]) set.delete(connection);
    this.endAfter(connection, admitted, undefined);
  }

  /** The client has its time to read the reply. */
  reply(connection: Connection): void {
    const admitted = this.admitted.get(connection);
    if (admitted === undefined || this.replied.all.has(connection)) return;
    const { most, mostReplied = most, replyMilliseconds } = this.limits;
    this.makeRoom(this.replied, mostReplied);
    for (const { all, idle } of [...admitted.groups, this.replied]) {
      all.add(connection);
      idle.add(connection);
    }
    this.endAfter(connection, admitted, replyMilliseconds);
  }

  /** The connection is closed. */
  left(connection: Connection): void {
    const admitted = this.admitted.get(connection);
    if (admitted === undefined) return;
    admitted.cancel();
    this.admitted.delete(connection);
    for (const { all, idle } of [...admitted.groups, this.replied]) {
      all.delete(connection);
      idle.delete(connection);
    }
    if (this.peers.get(admitted.peer)?.all.size === 0) this.peers.delete(admitted.peer);
  }

  /** Closes all of them. */
  endAll(): void {
    for (const connection of [...this.admitted.keys()]) this.endNow(connection);
  }

  /** Closes connections that are not in work until one more fits. */
  private makeRoom({ all, idle }: Group<Connection>, most: number): boolean {
    while (all.size >= most) {
      const [oldest] = idle;
      if (oldest === undefined) return false;
      this.endNow(oldest);
    }
    return true;
  }

  private endAfter(connection: Connection, admitted: Admitted<Connection>, milliseconds: number | undefined): void {
    admitted.cancel();
    admitted.cancel =
      milliseconds === undefined ? () => {} : this.timers.after(milliseconds, () => this.endNow(connection));
  }

  private endNow(connection: Connection): void {
    this.left(connection);
    this.end(connection);
  }
}

function newGroup<Connection>(): Group<Connection> {
  return { all: new Set(), idle: new Set() };
}
