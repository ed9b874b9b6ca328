/** Generates docs/annotations.md from the table of annotations. */
import { identity, ORCHESTRATOR_NAMES } from "../../src/identity.ts";
import { ANNOTATIONS, type AnnotationName, type AnnotationRow, annotationKey } from "../../src/plugin/annotations.ts";

export function annotationsPage(): string {
  const names = Object.keys(ANNOTATIONS) as AnnotationName[];
  return [
    "# Annotations",
    "",
    "<!-- The table is written by `make fmt` from src/plugin/annotations.ts, the text from scripts/docs/annotations-page.ts. Do not edit. -->",
    "",
    "Annotations of a pod, or of its namespace, choose the pod's addresses. They are read at ADD if the network config says how to reach the orchestrator's API",
    "(`kubernetes.kubeconfig` or `kubernetes.k8s_api_root`), whatever `policy.type` is. DEL does not read them. A running pod keeps its addresses if they change.",
    "",
    "| Annotation | On | Value | Example | Effect | Switch in the network config |",
    "|---|---|---|---|---|---|",
    ...names.map((name) => row(annotationKey(name), ANNOTATIONS[name])),
    "",
    "Unless the table says otherwise, a value is a string that contains a JSON array of strings:",
    "",
    "```yaml",
    "metadata:",
    "  annotations:",
    `    ${annotationKey("ipv4pools")}: '["blue"]'`,
    "```",
    "",
    `\`${ORCHESTRATOR_NAMES.map((name) => `${name}.io/ingress-bandwidth`).join("`, `")}\` and the same for egress: see [shaping.md](shaping.md).`,
    "",
    "## Precedence",
    "",
    "1. `ipAddrs` or `ipAddrsNoIpam` of the pod: these addresses and no others, also in a dual-stack network;",
    "2. `ipv4pools` and `ipv6pools` of the pod, each for its own family;",
    "3. `ipv4pools` and `ipv6pools` of the namespace. If the pod has the same annotation, the namespace's is not used at all: the lists are not merged;",
    "4. `ipv4_pools` and `ipv6_pools` of the network config;",
    "5. the node selectors of the pools.",
    "",
    "An address that the runtime requests (`IP` of CNI_ARGS, `ips`) is used if the pod has neither `ipAddrs` nor `ipAddrsNoIpam`; it must be in the pools of 2, 3",
    "or 4. `hwAddr` takes precedence over a MAC address that the runtime requests.",
    "",
    "## What is refused",
    "",
    "A pod does not run with other addresses than it requests: if an annotation cannot be honoured, ADD fails, and the pod stays in `ContainerCreating` with",
    "the message in its events. The message names the pod, the annotation, its value and the rule. [errors.md](errors.md) has the codes.",
    "",
    "| Rule | Code |",
    "|---|---|",
    "| The value is not a JSON array of strings, is empty, or has a malformed address, pool or MAC address | 121 |",
    "| The value has an IPv6 pool in `ipv4pools`, or an IPv4 pool in `ipv6pools` | 121 (CIDR), 101 (name) |",
    "| `ipAddrs` or `ipAddrsNoIpam` has two addresses of one family | 121 |",
    "| `ipAddrs` and `ipAddrsNoIpam` are set together | 121 |",
    "| The switch of `ipAddrsNoIpam` or `floatingIPs` is not `true` | 121 |",
    `| \`ipam.type\` is \`host-local\`, or another plugin than \`${identity.ipamType}\`, and the annotation requests an address or a pool | 121 |`,
    "| A pool does not exist, is disabled, or is named by a part of its CIDR | 101 |",
    "| An address of `ipAddrs` is not in an enabled pool | 105 |",
    "| An address of `ipAddrs` is in use | 104 |",
    "| A floating IP is of a family of which the pod has no address | 121 |",
    "| `allowedSourcePrefixes` is set | 121 |",
    "",
    `An unknown annotation that begins with \`${identity.annotationPrefix}\` is reported in the log, with the one that was probably meant; the pod runs. So is one of the namespace that is read on pods only.`,
    "",
    "Who may use `ipAddrsNoIpam` and `floatingIPs`: see [admission.md](admission.md).",
    "",
  ].join("\n");
}

function row(key: string, { on, value, example, effect, feature }: AnnotationRow): string {
  const cells = [`\`${key}\``, on, value, `\`${example}\``, effect, feature ? `\`feature_control.${feature}\`` : ""];
  return `| ${cells.join(" | ")} |`;
}
