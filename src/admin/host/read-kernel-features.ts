/**
 * Tries what the product needs of the kernel, each in a network namespace of its
 * own, so that nothing of the host changes and no attempt depends on another.
 * Loaded only by `node checksystem`.
 */
import { release } from "node:os";
import { PluginError } from "../../errors.ts";
import { parseAddress } from "../../ip/address.ts";
import { forgetConnections } from "../../linux/conntrack.ts";
import { closeFile, openToRead, readText } from "../../linux/files.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import type { NetlinkProtocol } from "../../linux/netlink-channel.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket, perform } from "../../linux/netlink-socket.ts";
import { runInNewNetns } from "../../linux/netns.ts";
import { commit } from "../../linux/nftables/commit.ts";
import { type Expression, ICMPX_CODE } from "../../linux/nftables/expression.ts";
import { type BaseChain, changesOf, type Ruleset } from "../../linux/nftables/ruleset.ts";
import type { NftSet } from "../../linux/nftables/set.ts";
import { createIpip } from "../../linux/rtnetlink/ipip.ts";
import { createIfb, findLink } from "../../linux/rtnetlink/link.ts";
import { ensureIngressHook, setTokenBucket } from "../../linux/rtnetlink/qdisc.ts";
import { createVeth } from "../../linux/rtnetlink/veth.ts";
import { createVxlan } from "../../linux/rtnetlink/vxlan.ts";
import type { KernelFeature, KernelFeatures } from "./facts.ts";

interface Attempt extends Omit<KernelFeature, "failure"> {
  /** Throws if the kernel cannot do it. */
  readonly attempt: () => void;
}

export async function readKernelFeatures(): Promise<KernelFeatures> {
  try {
    runInNewNetns(() => {});
  } catch (cause) {
    if (!isKernelError(cause, "EPERM", "EACCES")) throw cause;
    const message = "Cannot try the kernel: permission denied";
    throw new PluginError("kernel-refused", message, { details: "run it as root", cause });
  }
  return { release: release(), features: ATTEMPTS.map(tried) };
}

function tried({ attempt, ...feature }: Attempt): KernelFeature {
  try {
    runInNewNetns(attempt);
    return feature;
  } catch (failure) {
    return { ...feature, failure: failure instanceof Error ? failure.message : String(failure) };
  }
}

const MTU = 1400;
const FILTER: BaseChain = { type: "filter", hook: "forward", priority: 0, policy: "accept" };
const RAW: BaseChain = { type: "filter", hook: "prerouting", priority: -300, policy: "accept" };
const POSTROUTING: BaseChain = { type: "nat", hook: "postrouting", priority: 100, policy: "accept" };
const PREROUTING: BaseChain = { type: "nat", hook: "prerouting", priority: -100, policy: "accept" };
const ACCEPT: Expression = { kind: "verdict", verdict: { kind: "accept" } };

const ATTEMPTS: readonly Attempt[] = [
  {
    name: "veth links",
    neededBy: "every pod",
    need: "always",
    module: "veth",
    attempt: () => void makeVeth(),
  },
  {
    name: "nftables, families inet",
    neededBy: "NAT, policy and host ports",
    need: "always",
    module: "nf_tables",
    attempt: () => nft(FILTER, [{ kind: "counter" }, ACCEPT]),
  },
  {
    name: "nftables sets with ranges",
    neededBy: "policy",
    need: "always",
    module: "nf_tables",
    attempt: () => nft(FILTER, [ACCEPT], [{ name: "nets", key: ["ipv4_addr"], holdsIntervals: true }]),
  },
  {
    name: "nftables maps of several fields",
    neededBy: "host ports and policy",
    need: "always",
    module: "nf_tables",
    attempt: () =>
      nft(
        FILTER,
        [ACCEPT],
        [{ name: "ports", key: ["inet_proto", "inet_service"], data: ["ipv4_addr", "inet_service"] }],
      ),
  },
  {
    name: "nftables verdict maps",
    neededBy: "policy",
    need: "always",
    module: "nf_tables",
    attempt: () => nft(FILTER, [ACCEPT], [{ name: "pods", key: ["ifname"], data: "verdict" }]),
  },
  {
    name: "connection tracking",
    neededBy: "policy, NAT and host ports",
    need: "always",
    module: "nf_conntrack",
    attempt: () => nft(FILTER, [{ kind: "ct", key: "state", to: 1 }, ACCEPT]),
  },
  {
    name: "removal of tracked connections",
    neededBy: "host ports of UDP",
    need: "always",
    module: "nf_conntrack_netlink",
    attempt: () =>
      withSocket("netfilter", (socket) =>
        forgetConnections(socket, [{ family: 4, destination: address("192.0.2.1") }]),
      ),
  },
  {
    name: "masquerading",
    neededBy: "outgoing NAT of pools",
    need: "always",
    module: "nft_masq",
    attempt: () => nft(POSTROUTING, [{ kind: "masquerade" }]),
  },
  {
    name: "destination NAT",
    neededBy: "host ports and floating IPs",
    need: "always",
    module: "nft_nat",
    attempt: () =>
      nft(PREROUTING, [
        { kind: "meta", key: "nfproto", to: 2 },
        { kind: "compare", operator: "equal", from: 2, value: Uint8Array.of(2) },
        { kind: "immediate", to: 1, value: Uint8Array.of(192, 0, 2, 1) },
        { kind: "nat", type: "dnat", family: "ip", address: 1 },
      ]),
  },
  {
    name: "route lookups in rules",
    neededBy: "the check of local addresses",
    need: "always",
    module: "nft_fib_inet",
    attempt: () => nft(PREROUTING, [{ kind: "fib", result: "type", by: ["daddr"], to: 1 }, ACCEPT]),
  },
  {
    name: "untracked packets",
    neededBy: "policies with doNotTrack",
    need: "sometimes",
    module: "nft_ct",
    attempt: () => nft(RAW, [{ kind: "notrack" }]),
  },
  {
    name: "log and limit in rules",
    neededBy: 'policies with the action Log, and "policy trace --dropped"',
    need: "sometimes",
    module: "nft_log",
    attempt: () =>
      nft(FILTER, [
        { kind: "limit", rate: 10n, per: "second", burst: 50 },
        { kind: "log", prefix: "check " },
        { kind: "log", prefix: "check ", group: 1 },
      ]),
  },
  {
    name: "reject in rules",
    neededBy: "denyAction: Reject",
    need: "sometimes",
    module: "nft_reject_inet",
    attempt: () => nft(FILTER, [{ kind: "reject", type: "icmpx", code: ICMPX_CODE.adminProhibited }]),
  },
  {
    name: "VXLAN tunnels",
    neededBy: "pools with vxlanMode",
    need: "sometimes",
    module: "vxlan",
    attempt: makeVxlan,
  },
  {
    name: "IPIP tunnels",
    neededBy: "pools with ipipMode",
    need: "sometimes",
    module: "ipip",
    attempt: () => route((socket) => perform(socket, [createIpip({ name: "check0", mtu: MTU, state: "down" })])),
  },
  {
    name: "limits of bandwidth",
    neededBy: "the plugin bandwidth and its annotations",
    need: "sometimes",
    module: "sch_tbf",
    attempt: limitBandwidth,
  },
  {
    name: "IPv6",
    neededBy: "pools of IPv6",
    need: "sometimes",
    attempt: () => {
      if (readText("/proc/sys/net/ipv6/conf/all/forwarding") !== undefined) return;
      throw new Error("the kernel has no IPv6, or it was started with ipv6.disable=1");
    },
  },
];

function nft(base: BaseChain, expressions: readonly Expression[], sets: readonly NftSet[] = []): void {
  const ruleset: Ruleset = {
    table: { family: "inet", name: "check" },
    sets,
    chains: [{ name: "check", base }],
    rules: [{ chain: "check", expressions }],
    elements: [],
  };
  withSocket("netfilter", (socket) => commit(socket, changesOf(ruleset)));
}

function route(work: (socket: NetlinkSocket) => void): void {
  withSocket("route", work);
}

function withSocket(protocol: NetlinkProtocol, work: (socket: NetlinkSocket) => void): void {
  const socket = openNetlinkSocket(protocol);
  try {
    work(socket);
  } finally {
    closeNetlinkSocket(socket);
  }
}

function address(text: string) {
  const found = parseAddress(text);
  if (found === undefined) throw new PluginError("internal", `"${text}" is not an address`);
  return found;
}

/** Both ends in this namespace; returns the index of the first. */
function makeVeth(): number {
  const netnsFd = openToRead("/proc/thread-self/ns/net");
  if (netnsFd === undefined)
    throw new PluginError("internal", "Cannot open the network namespace: /proc is not mounted");
  let index = 0;
  try {
    route((socket) => {
      perform(socket, [createVeth({ host: { name: "check0", state: "down" }, peer: { name: "check1", netnsFd } })]);
      index = findLink(socket, "check0")?.index ?? 0;
    });
  } finally {
    closeFile(netnsFd);
  }
  return index;
}

function makeVxlan(): void {
  const underlyingIndex = makeVeth();
  const local = address("192.0.2.1");
  const mac = Uint8Array.of(0x02, 0, 0, 0, 0, 1);
  const device = {
    name: "check2",
    id: 4096,
    local,
    underlyingIndex,
    port: 4789,
    mac,
    mtu: MTU,
    state: "down",
  } as const;
  route((socket) => perform(socket, [createVxlan(device)]));
}

function limitBandwidth(): void {
  const link = { index: makeVeth(), name: "check0" };
  route((socket) =>
    perform(socket, [
      createIfb({ name: "check3", mtu: MTU, state: "down" }),
      setTokenBucket(link, { rate: 125_000n, burst: 15_000, limit: 30_000 }),
      ensureIngressHook(link),
    ]),
  );
}
