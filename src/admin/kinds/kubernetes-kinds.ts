/** Kinds of Kubernetes that users ask this tool for out of habit: they are kubectl's. */

/** With its short names. */
const KINDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["Pod", ["po"]],
  ["Service", ["svc"]],
  ["Namespace", ["ns"]],
  ["Deployment", ["deploy"]],
  ["DaemonSet", ["ds"]],
  ["StatefulSet", ["sts"]],
  ["ReplicaSet", ["rs"]],
  ["Job", []],
  ["CronJob", ["cj"]],
  ["ConfigMap", ["cm"]],
  ["Secret", []],
  ["ServiceAccount", ["sa"]],
  ["Endpoints", ["ep"]],
  ["EndpointSlice", []],
  ["Event", ["ev"]],
  ["Ingress", ["ing"]],
  ["CustomResourceDefinition", ["crd", "crds"]],
]);

/** In documents; on the command line they are another name of workload endpoints. */
const CONTAINER_WORDS: ReadonlySet<string> = new Set(["container", "containers"]);

/** What to do instead; `undefined` if the word does not name one of these kinds. `command`: if absent, it lists them. */
export function kubectlHint(word: string, command?: string): string | undefined {
  const wanted = word.toLowerCase();
  if (CONTAINER_WORDS.has(wanted))
    return `containers are those of the runtime (podman ps); ${ENDPOINTS_HINT}, their labels containerlabels`;
  const [kind] = [...KINDS].find(([name, short]) => wordsOf(name, short).includes(wanted)) ?? [];
  if (kind === undefined) return undefined;
  const instead = command ?? `get ${pluralOf(kind.toLowerCase())}`;
  const endpoints = kind === "Pod" ? `; ${ENDPOINTS_HINT}` : "";
  return `it is a kind of Kubernetes: use kubectl (kubectl ${instead})${endpoints}`;
}

const ENDPOINTS_HINT = "their endpoints in the network are workloadendpoints";

function wordsOf(kind: string, short: readonly string[]): readonly string[] {
  const name = kind.toLowerCase();
  return [name, pluralOf(name), ...short];
}

function pluralOf(name: string): string {
  if (name === "endpoints") return name;
  return name.endsWith("s") ? `${name}es` : `${name}s`;
}
