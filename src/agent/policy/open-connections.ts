/**
 * Ends the connections that a change of policy denies, if the configuration wants that (`openConnections: End`): exactly those that
 * the judge would deny at a point of this node if they began now.
 *
 *   update that the kernel has acknowledged ──▶ which connections it concerns ──┐
 *   first update, `End` was set, table is new ──▶ all ──────────────────────────┴──▶ at most each second a look:
 *
 *     connection table, in parts ──▶ those of workloads and host endpoints that are concerned ──▶ judge, in parts
 *       ──▶ denied, and no change since then concerns it, or denied after that, too ──▶ ended (end-connections.ts)
 *
 * Nothing is ended before the kernel has the rules: what begins then is judged by them. Each look is made twice, the second time a
 * second later: a packet that the former rules have accepted may still be on its way through the kernel, and its connection
 * comes into the table after the first look at it. That way takes microseconds; only another program that holds packets
 * (NFQUEUE) can make it longer than a second.
 *
 * A connection that a newer change concerns is judged again before it is ended, so that nothing is ended by policies that the kernel
 * has no more, and everything is although policy changes during each look at very many. A former agent may have been killed before it ended what is denied: at the start all are looked at.
 *
 * What the judge cannot know ends nothing: records that cannot be read any more, whose former content the kernel still has; and what the
 * host itself changes (addresses, links).
 */
import { describeFailure } from "../../errors.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import type { PolicyChanges } from "../../policy/inputs.ts";
import type { OpenConnectionJudge } from "../../policy/judge/open-connections.ts";
import { LONGEST_MILLISECONDS, nextTurn } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";
import type { AgentClock } from "../means.ts";
import {
  type AffectedConnections,
  ALL_CONNECTIONS,
  affectedBy,
  bothOf,
  isNone,
  judgedAnew,
  NO_CONNECTIONS,
  underPolicies,
} from "./affected-connections.ts";
import type { ConnectionEnder } from "./end-connections.ts";
import type { EnforcedResources } from "./enforced-resources.ts";
import { type ListedConnection, listConnections } from "./list-connections.ts";

/** Between two looks. */
const PACE_MILLISECONDS = 1_000;
/** Then other work of the agent comes first. */
const SLICE_MILLISECONDS = 5;
const ENDED_AT_ONCE = 64;
/** Judged again so often in a look, each time those alone that are still denied; what is left then is left to the next one. */
const MOST_JUDGEMENTS = 10;

export interface OpenConnectionMeans {
  readonly kernel: SocketOpener;
  readonly clock: Pick<AgentClock, "elapsed" | "wait">;
  /** What the kernel enforces now; `undefined`: nothing, or nobody knows what. */
  readonly enforced: () => JudgedResources | undefined;
  readonly ender: ConnectionEnder;
  /** So many were ended. */
  readonly ended: (count: number) => void;
  readonly report: (message: string) => void;
}

export interface JudgedResources extends Pick<EnforcedResources, "policies" | "isConcernedBy"> {
  readonly judgeOf: (...asked: Parameters<EnforcedResources["judgeOf"]>) => Promise<ConnectionJudge>;
}

type ConnectionJudge = Pick<OpenConnectionJudge, "isDenied">;

export class OpenConnections {
  /** Since the last look, and those that were looked at once. */
  private pending = NO_CONNECTIONS;
  private again = NO_CONNECTIONS;
  /** Since the resources were read by which connections are judged. */
  private newer = NO_CONNECTIONS;
  /** By the last look. */
  private judged: ReadonlySet<string> = new Set();
  private isFollowing = false;
  private readonly wakeup = new Wakeup();

  constructor(private readonly means: OpenConnectionMeans) {}

  /** The kernel has acknowledged these changes. `isWanted`: connections that it denies are ended, and there is a table. */
  changed(isWanted: boolean, changes: readonly PolicyChanges[]): void {
    if (!isWanted) {
      [this.pending, this.again, this.isFollowing] = [NO_CONNECTIONS, NO_CONNECTIONS, false];
      return;
    }
    const affected = this.isFollowing ? changes.map(affectedBy).reduce(bothOf, NO_CONNECTIONS) : ALL_CONNECTIONS;
    this.isFollowing = true;
    this.note(affected);
  }

  /** The kernel has acknowledged the rules of workloads with these addresses, which are reached by other links now. */
  moved(addresses: ReadonlySet<string>): void {
    if (this.isFollowing) this.note({ ...NO_CONNECTIONS, addresses });
  }

  private note(affected: AffectedConnections): void {
    if (isNone(affected)) return;
    this.pending = bothOf(this.pending, affected);
    this.newer = bothOf(this.newer, affected);
    this.wakeup.notify();
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, ender, report } = this.means;
    while (!signal.aborted) {
      const isWaiting = ender.isBusy || !isNone(bothOf(this.pending, this.again));
      const limit = isWaiting ? PACE_MILLISECONDS : LONGEST_MILLISECONDS;
      await clock.wait(limit, AbortSignal.any([signal, this.wakeup.signal]));
      this.wakeup.reset();
      if (signal.aborted) break;
      const [first, second] = [this.pending, this.again];
      [this.pending, this.again] = [NO_CONNECTIONS, first];
      try {
        await ender.tend(() => nextTurn(signal));
        await this.look({ affected: bothOf(first, second), isSecond: isNone(first) }, signal);
      } catch (failure) {
        if (signal.aborted) break;
        this.lookLater(bothOf(first, second));
        report(`Connections that policy denies are still open: ${describeFailure(failure)}`);
      }
      await clock.wait(PACE_MILLISECONDS, signal);
    }
    ender.close();
  }

  /** As if the look had not begun. */
  private lookLater(affected: AffectedConnections): void {
    if (this.isFollowing) this.pending = bothOf(this.pending, affected);
  }

  private async look({ affected, isSecond }: Look, signal: AbortSignal): Promise<void> {
    if (isNone(affected)) return;
    const enforced = this.readEnforced();
    if (enforced === undefined) {
      this.lookLater(affected);
      this.means.report("Connections that policy denies now stay open while there are resources that cannot be read");
      return;
    }
    const wanted = underPolicies(affected, enforced.policies);
    if (isNone(wanted)) return;
    const socket = this.means.kernel.openSocket("netfilter");
    try {
      const isWanted = enforced.isConcernedBy(wanted);
      const all = await listConnections(socket, { isWanted, pause: () => nextTurn(signal) });
      // Nothing has changed since the first one.
      const listed = isSecond ? all.filter((each) => !this.judged.has(keyOf(each))) : all;
      this.judged = new Set(isSecond ? [] : all.map(keyOf));
      if (listed.length === 0) return;
      const judge = await enforced.judgeOf(addressesOf(listed), () => nextTurn(signal));
      await this.end(await this.deniedOf(listed, judge, signal), { enforced, socket, signal });
    } finally {
      closeNetlinkSocket(socket);
    }
  }

  private readEnforced(): JudgedResources | undefined {
    this.newer = NO_CONNECTIONS;
    return this.means.enforced();
  }

  private async deniedOf(
    listed: readonly ListedConnection[],
    judge: ConnectionJudge,
    signal: AbortSignal,
  ): Promise<readonly ListedConnection[]> {
    const { elapsed } = this.means.clock;
    const denied: ListedConnection[] = [];
    let since = elapsed();
    for (const each of listed) {
      if (each.parent === undefined && judge.isDenied(each.connection)) denied.push(each);
      if (elapsed() - since < SLICE_MILLISECONDS) continue;
      await nextTurn(signal);
      since = elapsed();
    }
    if (denied.length === 0) return [];
    const parents = new Set(denied.map(({ tuple }) => tuple));
    return [...denied, ...listed.filter(({ parent }) => parent !== undefined && parents.has(parent))];
  }

  /** Those that a newer change concerns are judged again, by what the kernel has then. */
  private async end(denied: readonly ListedConnection[], looking: Looking): Promise<void> {
    let left = await this.endUnder(looking.enforced, denied, looking);
    for (let count = 1; left.length > 0 && count < MOST_JUDGEMENTS; count++) {
      const enforced = this.readEnforced();
      if (enforced === undefined) return;
      const judge = await enforced.judgeOf(addressesOf(left), () => nextTurn(looking.signal));
      left = await this.endUnder(enforced, await this.deniedOf(left, judge, looking.signal), looking);
    }
  }

  /** Returns those that a newer change concerns: they are open. */
  private async endUnder(
    enforced: JudgedResources,
    denied: readonly ListedConnection[],
    { socket, signal }: Looking,
  ): Promise<readonly ListedConnection[]> {
    const left: ListedConnection[] = [];
    let count = 0;
    for (let start = 0; start < denied.length; start += ENDED_AT_ONCE) {
      // Policy changes between two turns only, so that this is what the kernel has.
      if (!this.isFollowing) break;
      const isConcerned = enforced.isConcernedBy(judgedAnew(this.newer, enforced.policies));
      const some = denied.slice(start, start + ENDED_AT_ONCE);
      const isLeft = some.map(({ addresses: [source, answering] }) => isConcerned(source, answering));
      left.push(...some.filter((_, index) => isLeft[index]));
      count += this.means.ender.end(
        socket,
        some.filter((_, index) => !isLeft[index]),
      ).length;
      await nextTurn(signal);
    }
    if (count > 0) this.means.ended(count);
    return left;
  }
}

interface Look {
  readonly affected: AffectedConnections;
  /** Because of the same changes as the last one. */
  readonly isSecond: boolean;
}

interface Looking {
  readonly enforced: JudgedResources;
  readonly socket: NetlinkSocket;
  readonly signal: AbortSignal;
}

/** The kernel's number of another connection may be the same. */
function keyOf({ id, tuple }: ListedConnection): string {
  return `${id} ${tuple}`;
}

function addressesOf(listed: readonly ListedConnection[]): ReadonlySet<string> {
  const all = new Set<string>();
  for (const { addresses } of listed) for (const address of addresses) all.add(address);
  return all;
}
