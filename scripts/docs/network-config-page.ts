/** Generates docs/network-config.md from the schema of the network config. */
import type { Entries, Entry } from "../../src/config/field.ts";
import { networkConfigFields } from "../../src/config/schema.ts";
import { identity } from "../../src/identity.ts";

const HEAD = ["| Field | Type | Default | Allowed | Meaning |", "|---|---|---|---|---|"];

export function networkConfigPage(): string {
  const fields = networkConfigFields();
  const sections = Object.entries(fields).flatMap(([name, entry]) =>
    entry.kind === "section" ? ["", `## ${name}`, "", ...table(entry.fields, `${name}.`)] : [],
  );
  return [...introduction(), "", "## Top level", "", ...table(fields, ""), ...sections, ...closing(), ""].join("\n");
}

function table(fields: Entries, prefix: string): readonly string[] {
  return [...HEAD, ...Object.entries(fields).map(([name, entry]) => row(`${prefix}${name}`, entry))];
}

function row(name: string, entry: Entry): string {
  const [type, allowed] = entry.kind === "field" ? [entry.type.kind, entry.type.allowed] : ["object", "see below"];
  return `| \`${name}\` | ${type} | ${defaultText(entry)} | ${allowed} | ${entry.meaning} |`;
}

function defaultText(entry: Entry): string {
  if (entry.required) return "required";
  if (entry.kind === "section" || entry.absent === undefined) return "none";
  return `\`${entry.absent}\``;
}

function introduction(): readonly string[] {
  return [
    "# The network config",
    "",
    "<!-- Written by `make fmt` from src/config/schema.ts. Do not edit. -->",
    "",
    "The minimal config:",
    "",
    "```json",
    JSON.stringify(
      { name: "pods", cniVersion: "1.0.0", type: identity.product, ipam: { type: identity.ipamType } },
      undefined,
      2,
    ),
    "```",
    "",
    `\`${identity.adminTool} config check FILE\` reports everything that is wrong with a config, with line and column;`,
    "`--effective` prints the config with all defaults filled in. It compares the config with the host too: the CNI versions that podman, containerd and",
    "CRI-O accept ([how](decisions/runtime-versions-from-executables.md)), the plugins in their plugin directories, and the files and pools that the config",
    "names; `--skip-files` leaves this out, for the config of another machine. Without FILE it checks the directory of this host as runtimes read it.",
    "A valid config that this host refuses, or skips because an earlier file has the same network name, is a warning and ends with `would fail on this host` instead of `ok`.",
  ];
}

function closing(): readonly string[] {
  return [
    "",
    "## How it is read",
    "",
    '- `null`, `""`, `0` and `[]`, which other tools write for a missing value, count as absent.',
    "- Keys are matched exactly first, then case-insensitively.",
    "- Unknown keys are ignored; at log level DEBUG each is logged with the most similar known field.",
    "- All problems are reported together. Each names the field, the value, what is allowed and the fix.",
    "- User names and passwords in URLs, tokens and PEM text never appear in messages or logs.",
    "",
    "## Rules between fields",
    "",
    "- `etcd_endpoints` and `etcd_discovery_srv` are mutually exclusive.",
    "- `etcd_key_file` and `etcd_cert_file` must be set together. All files named in a config must be readable.",
    "- `etcd_scheme` and `etcd_authority` are used only if neither `etcd_endpoints` nor `etcd_discovery_srv` is set.",
    "- `labels` is an extension of this product, for workloads without Kubernetes ([an example](podman.md#policy)). An endpoint gets them when it is created; later only `vendorctl label workloadendpoint` changes them. [`ContainerLabels`](resources.md#containerlabels) win over them.",
    "- `datastore_type` `kubernetes` is another spelling of `orchestrator`. `embedded` is an extension of this product.",
    "- `log_file_path` has no default in the program: a config without it logs to stderr only, on hosts and in clusters alike. Every config that we install carries it; remove it there, or",
    "  with the operator set `logging.cni.logFilePath` to `None`, to switch file logging off ([logs.md](logs.md#switching-the-log-file-off)).",
    "- Each option's field in the operator's Installation: [installation-resource.md](installation-resource.md#options-of-the-network-config).",
    "- The node name is `nodename`, else the content of the node name file, else the host name in lower case. White space",
    `  around it is ignored. The file is \`nodename_file\`, by default \`${identity.stateDirectory}/nodename\`. The`,
    "  default file may be missing. A file named by `nodename_file` must exist unless `nodename_file_optional` is",
    "  true, or `nodename` is set.",
    "- Fields of another IPAM plugin inside `ipam` are passed to it unchanged.",
    "",
    "## What policy.type switches",
    "",
    "Policies are enforced by the node agent as soon as there is one, whatever `policy.type` says. It decides what a new pod has before that:",
    "",
    "| | without it | `k8s` |",
    "|---|---|---|",
    "| the policy table of a node | exists from the first policy or HostEndpoint on; until then all traffic passes | exists before any policy, and profiles count at once |",
    "| ADD while the kernel has no policy table (after a reboot) | succeeds | fails with code 11, and the runtime tries again: no pod starts unprotected |",
    "| etcd: the pod's endpoint | has the profile of its network, and none of the pod's labels and ports: Kubernetes NetworkPolicies do not select the pod | has the pod's labels, ports, service account and the profiles of its namespace and service account; the [controllers](controllers.md) keep them and copy the NetworkPolicies |",
    "| etcd: access to the Kubernetes API | not needed | required: `kubernetes.kubeconfig` or `kubernetes.k8s_api_root`; without it ADD of a pod fails with code 7, STATUS with 50, and `config check` reports an error. Of its role only `get` on pods is required ([kubernetes-access.md](kubernetes-access.md#permissions)) |",
    "| the Kubernetes API as the datastore | NetworkPolicies, Namespaces and ServiceAccounts are read directly and enforced anyway: the endpoint is the pod itself | the same, with the first two rows |",
    "| embedded | policies of this product are enforced by the endpoints' `labels` | the first two rows; pods need the API as with etcd |",
  ];
}
