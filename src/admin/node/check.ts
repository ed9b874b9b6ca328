import { describeDrop, remedyOf } from "../../firewall/forward-chains.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, wantsJson } from "../command.ts";
import { paint } from "../paint.ts";
import type { HostFacts } from "./host-facts.ts";

/** One thing that packets of pods depend on. */
interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "failed";
  readonly message: string;
  /** What to run. */
  readonly remedy?: string;
}

export const nodeCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check whether this host forwards the packets of pods",
  description: [
    "Runs on the node, as root. Checks IP forwarding and looks for firewall chains that drop forwarded packets.",
    "Reports each problem with the commands that fix it; changes nothing. The exit code is 1 if packets are dropped.",
  ].join("\n"),
  examples: [
    { command: "node check", does: "Check this host" },
    { command: "node check -o json", does: "Check it in a script" },
  ],
  async run(context, given) {
    const findings = findingsOf(await context.readHostFacts());
    const ok = findings.every(({ state }) => state !== "failed");
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, findings }, undefined, 2)}\n`);
    else print(findings, context);
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

export function findingsOf({ forwarding, droppingChains, hasLegacyFilter }: HostFacts): readonly Finding[] {
  return [
    forwardingFinding("IPv4", forwarding.ipv4, "net.ipv4.ip_forward"),
    forwardingFinding("IPv6", forwarding.ipv6, "net.ipv6.conf.all.forwarding"),
    ...(droppingChains.length === 0
      ? [{ check: "firewall", state: "ok", message: "no nftables chain drops all forwarded packets" } as const]
      : droppingChains.map(
          (chain): Finding => ({
            check: "firewall",
            state: "failed",
            message: describeDrop(chain),
            remedy: remedyOf(chain),
          }),
        )),
    ...(hasLegacyFilter
      ? [
          {
            check: "firewall",
            state: "warning",
            message: "iptables-legacy has a filter table, which this check cannot read",
            remedy: "iptables-legacy -S FORWARD",
          } as const,
        ]
      : []),
  ];
}

/** Off is only a warning: ADD of the first pod of the family switches it on. */
function forwardingFinding(family: string, isOn: boolean, sysctl: string): Finding {
  const check = `${family} forwarding`;
  if (isOn) return { check, state: "ok", message: "on" };
  return { check, state: "warning", message: "off until the first pod is added", remedy: `sysctl -w ${sysctl}=1` };
}

function print(findings: readonly Finding[], context: Context): void {
  const { green, red, yellow } = paint(context);
  const color = { ok: green, warning: yellow, failed: red };
  for (const { check, state, message, remedy } of findings) {
    context.stdout(`${color[state](state.padEnd(7))} ${check.padEnd(16)} ${message}\n`);
    if (remedy !== undefined) context.stdout(`${" ".repeat(25)}run: ${remedy}\n`);
  }
}
