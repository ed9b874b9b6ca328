/**
 * The rules of other programs on a large node: 4,000 Services as kube-proxy
 * writes them, 20,000 rules in 8,000 chains, with each of the three backends.
 */
const SERVICES = 4_000;

export type RuleBackend = "iptables-nft" | "iptables-legacy" | "nftables";

/** Installs them in the network namespace with that name, or in that of this process. */
export async function installForeignRules(backend: RuleBackend, netns?: string): Promise<void> {
  const enter = netns === undefined ? [] : ["nsenter", `--net=/run/netns/${netns}`];
  if (backend === "nftables") await feed([...enter, "nft", "-f", "-"], nftablesRules());
  else await feed([...enter, `${backend}-restore`], iptablesRules());
}

/** Removes all rules, including our own. */
export async function removeAllRules(): Promise<void> {
  await feed(["nft", "-f", "-"], "flush ruleset\n");
  await feed(["iptables-legacy-restore"], "*nat\nCOMMIT\n");
}

/** Five rules per Service: two that match it, one that jumps to the endpoint, two for the endpoint. */
function iptablesRules(): string {
  const chains = [":KUBE-SERVICES - [0:0]", ":KUBE-NODEPORTS - [0:0]", ":KUBE-MARK-MASQ - [0:0]"];
  const rules = ["-A PREROUTING -j KUBE-SERVICES", "-A OUTPUT -j KUBE-SERVICES"];
  for (let number = 0; number < SERVICES; number++) {
    const { service, endpoint, nodePort } = addressesOf(number);
    chains.push(`:KUBE-SVC-${number} - [0:0]`, `:KUBE-SEP-${number} - [0:0]`);
    rules.push(
      `-A KUBE-SERVICES -d ${service}/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-${number}`,
      `-A KUBE-NODEPORTS -p tcp -m tcp --dport ${nodePort} -j KUBE-SVC-${number}`,
      `-A KUBE-SVC-${number} -j KUBE-SEP-${number}`,
      `-A KUBE-SEP-${number} -s ${endpoint}/32 -j KUBE-MARK-MASQ`,
      `-A KUBE-SEP-${number} -p tcp -m tcp -j DNAT --to-destination ${endpoint}:80`,
    );
  }
  rules.push("-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS");
  return ["*nat", ...chains, ...rules, "COMMIT", ""].join("\n");
}

function nftablesRules(): string {
  const lines = ["table ip kube-proxy {", "chain mark-for-masquerade {", "mark set mark or 0x4000", "}"];
  for (let number = 0; number < SERVICES; number++) {
    const { service, endpoint, nodePort } = addressesOf(number);
    lines.push(
      `chain endpoint-${number} {`,
      `ip saddr ${endpoint} jump mark-for-masquerade`,
      `meta l4proto tcp dnat to ${endpoint}:80`,
      "}",
      `chain service-${number} {`,
      `ip daddr ${service} tcp dport 80 goto endpoint-${number}`,
      `tcp dport ${nodePort} goto endpoint-${number}`,
      `ip daddr ${service} counter reject`,
      "}",
    );
  }
  return [...lines, "}", ""].join("\n");
}

function addressesOf(number: number) {
  const tail = `${number >> 8}.${number & 255}`;
  return { service: `10.96.${tail}`, endpoint: `10.100.${tail}`, nodePort: 30_000 + number };
}

async function feed(command: readonly string[], text: string): Promise<void> {
  const child = Bun.spawn([...command], { stdin: new TextEncoder().encode(text), stdout: "ignore", stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${await new Response(child.stderr).text()}`);
}
