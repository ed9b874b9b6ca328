/**
 * Ends connections: the kernel tracks them no more, and both ends of a TCP connection get a reset, also of an idle one.
 *
 *   1. the table of resets knows how each end sees the connection: from now on what either sends is reset
 *   2. the entries are removed: what comes now and is not TCP begins a connection, which policy judges
 *   3. both ends are made to send something (src/linux/tcp-probe.ts), and again after a second, in case it was lost
 *   4. after some seconds, or once it begins again, the table forgets the connection, and is gone with the last one
 *
 * A kernel without such a table still forgets the connections: their ends notice when nothing arrives any more.
 * Why: docs/decisions/open-connections.md.
 */
import { describeFailure } from "../../errors.ts";
import { type EndedSender, RESET_MILLISECONDS, ResetTable } from "../../firewall/reset-table.ts";
import { type ListedEntry, removeListed } from "../../linux/conntrack-entries.ts";
import type { NetlinkSocket, SocketOpener } from "../../linux/netlink-socket.ts";
import type { TcpProber } from "../../linux/tcp-probe.ts";
import { RESETTING } from "../../policy/render/packet-mark.ts";

const PROBE_AGAIN_MILLISECONDS = 1_000;

export interface EndedConnection extends ListedEntry {
  /** How its source and who answers see it. Of TCP only. */
  readonly senders?: TwoSenders;
}

type TwoSenders = readonly [client: EndedSender, server: EndedSender];

export interface EndMeans {
  readonly kernel: SocketOpener;
  /** `undefined`: of a host without packets. */
  readonly openProber: ((mark: number) => TcpProber) | undefined;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly report: (message: string) => void;
}

interface Resetting {
  ended: readonly TwoSenders[];
  readonly since: number;
  isProbedAgain: boolean;
}

export class ConnectionEnder {
  private table: ResetTable | undefined;
  private prober: TcpProber | undefined;
  /** The oldest first. */
  private resetting: Resetting[] = [];

  constructor(private readonly means: EndMeans) {}

  /** Whether `tend` has something to do. */
  get isBusy(): boolean {
    return this.resetting.length > 0;
  }

  /** `tracking`: a netfilter socket. Returns those that were open. Throws if the kernel does not remove entries. */
  end<Connection extends EndedConnection>(
    tracking: NetlinkSocket,
    connections: readonly Connection[],
  ): readonly Connection[] {
    const senders = sendersOf(connections);
    const resetting = senders.length > 0 ? this.reset(senders) : undefined;
    const removed = removeListed(tracking, connections);
    if (resetting === undefined) return removed;
    const isRemoved = new Set(removed);
    resetting.ended = sendersOf(removed);
    this.spare(sendersOf(connections.filter((each) => !isRemoved.has(each))));
    this.probe(resetting.ended);
    return removed;
  }

  /** Called again and again, as long as it is busy. `pause`: other work may be done meanwhile, but not with this. */
  async tend(pause: () => Promise<void>): Promise<void> {
    const now = this.means.elapsed();
    for (const each of this.resetting) {
      if (each.isProbedAgain || now - each.since < PROBE_AGAIN_MILLISECONDS) continue;
      each.isProbedAgain = true;
      this.probe(each.ended);
      await pause();
    }
    this.resetting = this.resetting.filter(({ since }) => now - since < RESET_MILLISECONDS);
    if (this.resetting.length === 0) this.close();
  }

  /** Connections that were ended some moments ago get no resets any more. */
  close(): void {
    this.resetting = [];
    this.prober?.close();
    this.prober = undefined;
    this.table?.close();
    this.table = undefined;
  }

  private reset(ended: readonly TwoSenders[]): Resetting | undefined {
    try {
      this.table ??= ResetTable.open(this.means.kernel, RESETTING);
      this.table.add(ended.flat());
    } catch (failure) {
      this.means.report(`TCP connections that policy denies end without a reset: ${describeFailure(failure)}`);
      this.close();
      return undefined;
    }
    const resetting = { ended, since: this.means.elapsed(), isProbedAgain: false };
    this.resetting.push(resetting);
    return resetting;
  }

  /** Of connections that had ended before, whose ends may have another one by now, and of those that cannot be ended. */
  private spare(ended: readonly TwoSenders[]): void {
    try {
      for (const each of ended.flat()) this.table?.remove(each);
    } catch (failure) {
      this.means.report(`Cannot forget TCP connections that have ended: ${describeFailure(failure)}`);
    }
  }

  private probe(ended: readonly TwoSenders[]): void {
    try {
      this.prober ??= this.means.openProber?.(RESETTING.bit);
      for (const [client, server] of ended) {
        this.prober?.probe(client.to, client.from, "server");
        this.prober?.probe(server.to, server.from, "client");
      }
    } catch (failure) {
      this.means.report(`Idle TCP connections that policy denies are not reset at once: ${describeFailure(failure)}`);
    }
  }
}

function sendersOf(connections: readonly EndedConnection[]): readonly TwoSenders[] {
  return connections.flatMap(({ senders }) => (senders === undefined ? [] : [senders]));
}
