/** What CNI accepts as a container ID, a network name and an interface name. */

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** The kernel keeps 16 bytes for an interface name, the last of them a zero. */
const INTERFACE_NAME_BYTES = 15;

/** Why `name` is no container ID or network name; `undefined` when it is one. */
export function nameProblem(name: string): string | undefined {
  if (NAME.test(name)) return undefined;
  return "only letters, digits, _, . and - are allowed, and the first must be a letter or a digit";
}

/** Why `name` is no interface name; `undefined` when it is one. */
export function interfaceNameProblem(name: string): string | undefined {
  if (name === "") return "it is empty";
  if (new TextEncoder().encode(name).length > INTERFACE_NAME_BYTES)
    return `it is longer than ${INTERFACE_NAME_BYTES} bytes`;
  if (name === "." || name === "..") return "it must not be . or ..";
  if (/[/:\s\u0085]/u.test(name)) return "it must not hold /, : or white space";
  return undefined;
}
