/** Decodes the command line of the node agent. Pure. */

export const SERVE_CALLS = "serve-calls";
export const COLLECT_FLOWS = "collect-flows";
export const HOST_NAMESPACES = "--host-namespaces";
export const PARENT = "--parent";
export const INSTALL = "install";
export const UNINSTALL = "uninstall";
export const STAY = "--stay";
export const KEEP_FILES = "--keep-files";
/** The exit status of an uninstallation that containers stop, and nothing else. */
export const EXIT_IN_USE = 3;

export type NodeRequest =
  | { readonly kind: "version" | "help" }
  | { readonly kind: "wrong"; readonly argument: string }
  | { readonly kind: "agent" | typeof INSTALL; readonly hostNamespaces?: string }
  | ({ readonly kind: typeof UNINSTALL; readonly hostNamespaces?: string } & UninstallOptions)
  | { readonly kind: "call server"; readonly parent?: number }
  | { readonly kind: "flow collector"; readonly parent?: number };

export interface UninstallOptions {
  readonly stays?: true;
  readonly keepsFiles?: true;
}

export function readNodeArguments(args: readonly string[]): NodeRequest {
  const [first] = args;
  if (first === "-v") return { kind: "version" };
  if (first === "-h" || first === "--help") return { kind: "help" };
  if (first === SERVE_CALLS) return withOptions({ kind: "call server" }, args.slice(1));
  if (first === COLLECT_FLOWS) return withOptions({ kind: "flow collector" }, args.slice(1));
  if (first === INSTALL || first === UNINSTALL) return withOptions({ kind: first }, args.slice(1));
  return withOptions({ kind: "agent" }, args);
}

/** Every option but these two has a value: the next argument, or after "=". */
function withOptions(
  request: Exclude<NodeRequest, { readonly kind: "version" | "help" | "wrong" }>,
  args: readonly string[],
): NodeRequest {
  const [first = "", ...rest] = args;
  if (first === "") return args.length === 0 ? request : { kind: "wrong", argument: first };
  if (first === STAY && request.kind === UNINSTALL) return withOptions({ ...request, stays: true }, rest);
  if (first === KEEP_FILES && request.kind === UNINSTALL) return withOptions({ ...request, keepsFiles: true }, rest);
  const at = first.indexOf("=");
  const [name, value, others] =
    at < 0 ? [first, rest[0], rest.slice(1)] : [first.slice(0, at), first.slice(at + 1), rest];
  if (value === undefined || value === "") return { kind: "wrong", argument: first };
  if (request.kind === "call server" || request.kind === "flow collector") {
    if (name === PARENT && /^\d+$/.test(value)) return withOptions({ ...request, parent: Number(value) }, others);
    return { kind: "wrong", argument: first };
  }
  if (name === HOST_NAMESPACES && value.startsWith("/"))
    return withOptions({ ...request, hostNamespaces: value }, others);
  return { kind: "wrong", argument: first };
}
