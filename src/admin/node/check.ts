import { findInstalledNetwork } from "../../config/installed-network.ts";
import { describeDrop, describePartialDrop, remedyOf } from "../../firewall/forward-chains.ts";
import { identity } from "../../identity.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, wantsJson } from "../command.ts";
import { paint } from "../paint.ts";
import type { Finding } from "./finding.ts";
import type { HostFacts } from "./host-facts.ts";
import { ownTableFindings, type SwitchFacts } from "./own-table-findings.ts";

export const nodeCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check whether this host forwards the packets of pods",
  description: [
    "Runs on the node, as root. Checks IP forwarding, looks for firewall chains that drop forwarded packets, and checks whether",
    "the product's own tables (NAT, floating IPs, spoofing, host ports, policy) and the reverse path filters of pods are in place.",
    "Reports each problem with the commands that fix it; changes nothing. The exit code is 1 if a check has failed.",
  ].join("\n"),
  versionCheck: "none",
  examples: [
    { command: "node check", does: "Check this host" },
    { command: "node check -o json", does: "Check it in a script" },
  ],
  async run(context, given) {
    const facts = await context.readHostFacts();
    const network = await findInstalledNetwork(context).catch(() => undefined);
    const config = network?.decoded.config;
    const isPolicyRequired = config?.policyType !== undefined;
    const switches = config === undefined ? {} : { allowsFurtherSources: config.features.allowedSourcePrefixes };
    const findings = [...findingsOf({ ...facts, ...switches }), policyFinding(facts, isPolicyRequired)];
    const ok = findings.every(({ state }) => state !== "failed");
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, findings }, undefined, 2)}\n`);
    else print(findings, context);
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

export function findingsOf(facts: HostFacts & SwitchFacts): readonly Finding[] {
  const { forwarding, droppingChains, partlyDroppingChains, hasLegacyFilter } = facts;
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
    ...partlyDroppingChains.map(
      (chain): Finding => ({
        check: "firewall",
        state: "warning",
        message: describePartialDrop(chain),
        remedy: `nft list table ${chain.table.family} ${chain.table.name}`,
      }),
    ),
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
    ...ownTableFindings(facts),
  ];
}

/** `isRequired`: the installed network config has `policy.type`. One that cannot be read is reported by `config check`. */
export function policyFinding({ hasPolicyTable }: Pick<HostFacts, "hasPolicyTable">, isRequired: boolean): Finding {
  const check = "network policy";
  if (hasPolicyTable) return { check, state: "ok", message: "the node agent has set its rules" };
  if (!isRequired) return { check, state: "ok", message: "no table: no policy is enforced on this host" };
  return {
    check,
    state: "failed",
    message: `the network config has policy.type, but the node agent has not set its rules: pods are not added`,
    remedy: `systemctl enable --now ${identity.nodeAgent}   # its log names the reason if it runs already`,
  };
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
