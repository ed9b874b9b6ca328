/**
 * CNI_ARGS: `KEY=value;KEY=value`, what the runtime knows about the pod.
 *
 * Only a plugin that uses these keys decodes them: an unknown key is an error, which
 * a plugin that does not use CNI_ARGS must not report.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";

export interface CniArguments {
  readonly podNamespace?: string | undefined;
  readonly podName?: string | undefined;
  readonly podUid?: string | undefined;
  readonly infraContainerId?: string | undefined;
  /** The requested address, as text. */
  readonly ip?: string | undefined;
  /** The requested MAC address, as text. */
  readonly mac?: string | undefined;
}

const KEYS: Readonly<Record<string, keyof CniArguments>> = {
  K8S_POD_NAMESPACE: "podNamespace",
  K8S_POD_NAME: "podName",
  K8S_POD_UID: "podUid",
  K8S_POD_INFRA_CONTAINER_ID: "infraContainerId",
  IP: "ip",
  MAC: "mac",
};

const IGNORE_UNKNOWN = "IgnoreUnknown";

interface Pair {
  readonly key: string;
  readonly value: string;
}

/** One error lists every malformed pair or every unknown key. If a key is repeated, the last value counts. */
export function decodeArguments(text: string): CniArguments {
  const pairs = splitPairs(text);
  const unknown = pairs.map(({ key }) => key).filter((key) => !Object.hasOwn(KEYS, key) && key !== IGNORE_UNKNOWN);
  if (unknown.length > 0 && !ignoresUnknown(pairs)) {
    throw refusal(
      `unknown ${unknown.length === 1 ? "key" : "keys"} ${listed(unknown)}; set IgnoreUnknown=1 to ignore them`,
    );
  }
  const found: { -readonly [field in keyof CniArguments]: CniArguments[field] } = {};
  for (const { key, value } of pairs) {
    const field = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
    if (field !== undefined) found[field] = value === "" ? undefined : value;
  }
  return found;
}

export interface Pod {
  readonly namespace: string;
  readonly name: string;
}

/** A pod has both; one without the other does not name a pod. */
export function podOf({ podNamespace, podName }: CniArguments): Pod | undefined {
  return podNamespace === undefined || podName === undefined ? undefined : { namespace: podNamespace, name: podName };
}

/** podman passes the name of the container as that of a pod without a namespace. */
export function containerNameOf(args: CniArguments): string | undefined {
  return podOf(args) === undefined ? args.podName : undefined;
}

/** For ADD: throws if an address or a MAC is requested twice, differently. */
export function refuseTwoRequests(text: string): void {
  for (const wanted of ["IP", "MAC"]) {
    const values = splitPairs(text).flatMap(({ key, value }) => (key === wanted ? value : []));
    if (new Set(values).size > 1) {
      throw refusal(`${wanted} is ${listed(values)}; write it once`);
    }
  }
}

function splitPairs(text: string): readonly Pair[] {
  if (text === "") return [];
  const malformed: string[] = [];
  const pairs: Pair[] = [];
  for (const pair of text.split(";")) {
    const [key, value, ...rest] = pair.split("=");
    if (key === undefined || key === "" || value === undefined || rest.length > 0) malformed.push(pair);
    else pairs.push({ key, value });
  }
  if (malformed.length === 0) return pairs;
  throw refusal(`${listed(malformed)} does not have the form KEY=value`);
}

function ignoresUnknown(pairs: readonly Pair[]): boolean {
  const value = pairs.findLast(({ key }) => key === IGNORE_UNKNOWN)?.value.toLowerCase() ?? "0";
  if (value === "1" || value === "true") return true;
  if (value === "0" || value === "false") return false;
  throw refusal(`IgnoreUnknown is ${quoted(value)}; use 1, true, 0 or false`);
}

function listed(words: readonly string[]): string {
  return words.map((word) => quoted(word)).join(", ");
}

function refusal(state: string): PluginError {
  return new PluginError("environment-invalid", `Cannot use CNI_ARGS: ${state}`);
}
