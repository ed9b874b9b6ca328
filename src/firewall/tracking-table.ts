/**
 * The table that makes the kernel track connections where nothing else needs it: on a host without policies, translations and
 * `kube-proxy` there would be no flows. The collector of flows owns it: the kernel removes it when the collector ends.
 *
 * The kernel tracks connections as long as any rule asks for their state, also one of a chain that no packet enters.
 */
import { identity } from "../identity.ts";
import { isKernelError } from "../linux/kernel-error.ts";
import { closeNetlinkSocket, ownSockets } from "../linux/netlink-socket.ts";
import { commit } from "../linux/nftables/commit.ts";
import { changesOf, type TableReference } from "../linux/nftables/ruleset.ts";

const TRACKING_TABLE: TableReference = { family: "inet", name: `${identity.policyTable}_flows` };

/**
 * In the current network namespace of the thread, until it is disposed of. `undefined`: another process has the table, as a
 * collector that is ending. Throws if the kernel cannot: the owner of a table needs Linux 5.12.
 */
export function trackConnections(): Disposable | undefined {
  const socket = ownSockets.openSocket("netfilter");
  try {
    const rules = [{ chain: "tracked", expressions: [{ kind: "ct", key: "state", to: 0 } as const] }];
    const content = { table: TRACKING_TABLE, sets: [], chains: [{ name: "tracked" }], rules, elements: [] };
    commit(socket, [{ kind: "add-table", table: TRACKING_TABLE, isOwned: true }, ...changesOf(content).slice(1)]);
    return { [Symbol.dispose]: () => closeNetlinkSocket(socket) };
  } catch (failure) {
    closeNetlinkSocket(socket);
    if (isKernelError(failure, "EPERM") || isKernelError(failure, "EEXIST")) return undefined;
    throw failure;
  }
}
