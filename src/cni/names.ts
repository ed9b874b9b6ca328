/** The rules of CNI for container IDs, network names and interface names. */
import { quoted } from "../quote.ts";
import { type JsonObject, kindOf } from "./json.ts";

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** The kernel has 16 bytes for an interface name, the last of which is zero. */
const INTERFACE_NAME_BYTES = 15;

/**
 * Why `name` is not a valid container ID or network name; `undefined` if it is valid. libcni refuses other network names
 * before it starts a plugin, and plugins made with CNI's own library refuse them too: they would fail later in a chain.
 */
export function nameProblem(name: string): string | undefined {
  if (NAME.test(name)) return undefined;
  return "only letters, digits, _, . and - are allowed, and the first character must be a letter or a digit";
}

/** Of an ID that a runtime made, as much as it shows itself. */
export function shortContainerId(containerId: string): string {
  return /^[0-9a-f]{64}$/.test(containerId) ? containerId.slice(0, 12) : containerId;
}

/** Why a network config's `name` cannot be used: the kind of failure and the state of the field. */
export function networkNameProblem(
  config: JsonObject,
): { readonly kind: "config-invalid" | "decode-failure"; readonly state: string } | undefined {
  const name = config["name"] ?? "";
  if (typeof name !== "string") {
    return { kind: "decode-failure", state: `"name" is ${kindOf(name)}, not a string` };
  }
  if (name === "") return { kind: "config-invalid", state: '"name" is missing: add the name of the network' };
  const problem = nameProblem(name);
  return problem === undefined ? undefined : { kind: "config-invalid", state: `"name" is ${quoted(name)}: ${problem}` };
}

/** Why `name` is not a valid interface name; `undefined` if it is valid. */
export function interfaceNameProblem(name: string): string | undefined {
  if (name === "") return "it is empty";
  if (new TextEncoder().encode(name).length > INTERFACE_NAME_BYTES)
    return `it is longer than ${INTERFACE_NAME_BYTES} bytes`;
  if (name === "." || name === "..") return "it must not be . or ..";
  if (/[/:\s\u0085]/u.test(name)) return "it must not contain /, : or white space";
  return undefined;
}
