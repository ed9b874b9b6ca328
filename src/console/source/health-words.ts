/** What health of clusters and hosts has in common: findings as problems, and which state is the gravest. Pure. */
import type { StatusFinding } from "../../admin/status/finding.ts";
import { identity } from "../../identity.ts";
import type { Node } from "../../model/node.ts";
import { recordedTunnelAddress, TUNNEL_ADDRESSES } from "../../model/tunnel-address.ts";
import type { HealthProblem, State } from "../api/health.ts";

/** The gravest first. What is not known says little about the rest. */
const GRAVEST: readonly State[] = ["failed", "warning", "ok", "unknown"];

export function gravest(states: readonly State[]): State {
  return GRAVEST.find((state) => states.includes(state)) ?? "unknown";
}

/** `withoutSubject`: it is shown below its subject. */
export function problemOf(
  { state, subject, message, remedy }: StatusFinding,
  { withoutSubject = false }: { readonly withoutSubject?: boolean } = {},
): HealthProblem {
  const said = { state, message: withoutSubject ? message : `${subject}: ${message}` };
  if (remedy === undefined) return said;
  return isCommand(remedy) ? { ...said, command: remedy } : { ...said, remedy };
}

export function gravestFirst(problems: readonly HealthProblem[]): readonly HealthProblem[] {
  return [...problems.filter(({ state }) => state === "failed"), ...problems.filter(({ state }) => state !== "failed")];
}

const PROGRAMS = [identity.adminTool, "kubectl", "systemctl", "journalctl", "sysctl", "cp", "ip", "nft"];

/** Whether it can be copied into a shell as a whole: other remedies are sentences, in which commands may occur. */
export function isCommand(remedy: string): boolean {
  const [program = ""] = remedy.split(" ");
  return PROGRAMS.includes(program) && !/[;,]\s|\s(?:or|to|and|if)\s|: /.test(remedy);
}

/** `VXLAN 10.0.0.1, WireGuard 10.0.0.2` */
export function tunnelWords({ spec }: Node): string {
  const tunnels = TUNNEL_ADDRESSES.flatMap(({ kind, title }) => {
    const address = recordedTunnelAddress(spec, kind);
    return address === undefined ? [] : [`${title.replace(/^IPv6 | tunnel$/g, "")} ${address}`];
  });
  const { interfaceIPv4Address: own4, interfaceIPv6Address: own6 } = spec.wireguard ?? {};
  return [
    ...tunnels,
    ...[own4, own6].flatMap((address) => (address === undefined ? [] : [`WireGuard ${address}`])),
  ].join(", ");
}
