/** The guard of the tunnels in the kernel, and what other programs change in it. */
import { applyTunnelGuard, changeSenders, type GuardedTunnels } from "../../firewall/apply-tunnel.ts";
import { TUNNEL_TABLE } from "../../firewall/tunnel-table.ts";
import { parseAddress } from "../../ip/address.ts";
import { portOf } from "../../linux/netlink-group.ts";
import { closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { TableMonitor } from "../../linux/nftables/monitor.ts";
import type { Guarded, TunnelGuard } from "./network-keeper.ts";
import { TUNNEL_NAMES } from "./tunnel-device.ts";

export interface KernelGuard extends TunnelGuard {
  /** Whether other programs may have changed the table since the last call. */
  isSuspect(): boolean;
  close(): void;
}

export function openKernelGuard(kernel: SocketOpener): KernelGuard {
  const socket = kernel.openSocket("netfilter");
  let monitor: TableMonitor | undefined;
  const apply = (plan: Guarded) => {
    const wanted = guardedTunnels(plan);
    // Before the comparison, so that no change is missed.
    if (wanted.tunnels.length > 0) monitor ??= new TableMonitor(kernel, TUNNEL_TABLE, portOf(socket));
    const isWritten = applyTunnelGuard(socket, wanted);
    // A host without tunnels does not listen: rulesets of megabytes may be loaded on it.
    if (wanted.tunnels.length === 0 && isWritten) {
      monitor?.close();
      monitor = undefined;
    }
  };
  return {
    apply,
    follow(plan, changed) {
      if (plan.tunnels.size === 0) return;
      const added = [...changed].flatMap((key) => plan.senders.get(key) ?? []);
      const gone = [...changed].filter((key) => !plan.senders.has(key)).flatMap((key) => parseAddress(key) ?? []);
      if (!changeSenders(socket, gone, added)) apply(plan);
    },
    isSuspect: () => monitor !== undefined && monitor.read().kind !== "nothing",
    close() {
      monitor?.close();
      closeNetlinkSocket(socket);
    },
  };
}

function guardedTunnels({ tunnels, vxlanPorts, senders, isPartial }: Guarded): GuardedTunnels {
  const guarded = TUNNEL_NAMES.filter((name) => tunnels.has(name));
  return { tunnels: guarded, vxlanPorts, senders: [...senders.values()], isPartial };
}
