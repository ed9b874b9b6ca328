/** CHECK: compares the token buckets and the redirection in the kernel with what ADD set. */
import type { CheckCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { type NetlinkSocket, ownSockets } from "../../linux/netlink-socket.ts";
import {
  bufferTicks,
  findRootQdisc,
  type ShapedLink,
  type TokenBucket,
  type TokenBucketSeen,
} from "../../linux/rtnetlink/qdisc.ts";
import { isRedirectTo, listIngressFilters } from "../../linux/rtnetlink/redirect.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { quoted } from "../../quote.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { requireHostVeth } from "./host-veth.ts";
import { ifbNamesOf } from "./ifb-identity.ts";
import { findIfbs, type ShapedAttachment } from "./shaping.ts";
import { tokenBucketOf } from "./token-bucket.ts";

/** Throws one error that lists every difference. */
export function checkShaping(call: CheckCall, result: CniResult, bandwidth: Bandwidth): void {
  const differences = withRouteSocket(ownSockets, (socket) => {
    const at = { veth: requireHostVeth(socket, call, result), names: ifbNamesOf(call) };
    return [...ingressDifferences(socket, at, bandwidth), ...egressDifferences(socket, at, bandwidth)];
  });
  if (differences.length === 0) return;
  const subject = `interface "${call.ifname}" of container ${quoted(call.containerId)}`;
  throw new PluginError("check-failed", `Cannot confirm the shaping of ${subject}: ${differences.join("; ")}`);
}

function ingressDifferences(
  socket: NetlinkSocket,
  { veth }: ShapedAttachment,
  { ingress }: Bandwidth,
): readonly string[] {
  return ingress === undefined ? [] : bucketDifferences(socket, veth, tokenBucketOf(ingress, veth.mtu));
}

function egressDifferences(
  socket: NetlinkSocket,
  { veth, names }: ShapedAttachment,
  { egress }: Bandwidth,
): readonly string[] {
  if (egress === undefined) return [];
  const [ifb] = findIfbs(socket, names);
  if (ifb === undefined) return [`link "${names.candidates[0]}" is missing`];
  const differences = [...bucketDifferences(socket, ifb, tokenBucketOf(egress, veth.mtu))];
  if (!ifb.isUp) differences.push(`link "${ifb.name}" is down`);
  if (!listIngressFilters(socket, veth).some((filter) => isRedirectTo(filter, ifb.index))) {
    differences.push(`incoming traffic of link "${veth.name}" is not redirected to link "${ifb.name}"`);
  }
  return differences;
}

function bucketDifferences(socket: NetlinkSocket, link: ShapedLink, wanted: TokenBucket): readonly string[] {
  const seen = findRootQdisc(socket, link)?.tokenBucket;
  if (seen === undefined) return [`link "${link.name}" has no token bucket`];
  const differences: string[] = [];
  if (seen.rate !== wanted.rate) differences.push(`rate of link "${link.name}" is ${seen.rate}, not ${wanted.rate}`);
  if (seen.limit !== wanted.limit)
    differences.push(`limit of link "${link.name}" is ${seen.limit}, not ${wanted.limit}`);
  if (!isSameBurst(seen, wanted)) differences.push(`burst of link "${link.name}" is not ${wanted.burst}`);
  return differences;
}

/** The kernel computes the time of a burst with a rounded factor: it may differ by a few ticks, or by one in 100,000. */
function isSameBurst({ bufferTicks: seen }: TokenBucketSeen, wanted: TokenBucket): boolean {
  const ticks = bufferTicks(wanted);
  return Math.abs(seen - ticks) <= 2 + ticks / 100_000;
}
