/**
 * Every kind of error: one table from error kind to CNI error code, and whether a retry can succeed.
 *
 * CNI reserves codes 0-99; 100 and up are ours; 999 is what CNI libraries use
 * for untyped errors. `docs/errors.md` is generated from this table.
 */
interface ErrorRow {
  readonly code: number;
  /** What happened. */
  readonly meaning: string;
  /** What the operator can do about it. */
  readonly remedy: string;
  readonly retry: Retry;
}

/**
 * Whether a retry can succeed: "no" until something is changed; "later", because the cause may be temporary;
 * "after reading again", because the attempt was based on data that have changed since.
 */
export type Retry = "no" | "later" | "after reading again";

export const ERROR_TABLE = {
  "version-incompatible": {
    code: 1,
    retry: "no",
    meaning: "This plugin, or this command, does not support the CNI version of the network config",
    remedy: "Set `cniVersion` to one of the versions listed in the message",
  },
  "field-unsupported": {
    code: 2,
    retry: "no",
    meaning: "The network config has a field, or a value of a field, that this plugin does not support",
    remedy: "Remove the field named in the message, or set it to one of the listed values",
  },
  "container-unknown": {
    code: 3,
    retry: "no",
    meaning: "The container no longer exists",
    remedy: "None: the runtime does not need to call DEL for it",
  },
  "environment-invalid": {
    code: 4,
    retry: "no",
    meaning: "A CNI_* environment variable is missing or malformed",
    remedy: "The runtime that runs the plugin must set the variables named in the message",
  },
  "io-failure": {
    code: 5,
    retry: "no",
    meaning: "Standard input could not be read, or a file could not be read or written",
    remedy: "Check the path and the permissions named in the message",
  },
  "decode-failure": {
    code: 6,
    retry: "no",
    meaning: "The network config, or the result of another plugin, is not valid JSON or has an unexpected structure",
    remedy: "Correct the JSON at the position named in the message",
  },
  "config-invalid": {
    code: 7,
    retry: "no",
    meaning: "A value in the network config is invalid",
    remedy: "Correct the fields listed in the message; `config check` of the admin tool shows their line and column",
  },
  "netns-invalid": {
    code: 8,
    retry: "no",
    meaning: "CNI_NETNS is not a network namespace, or is the host's own",
    remedy: "Give the container its own network namespace",
  },
  "try-again-later": {
    code: 11,
    retry: "later",
    meaning:
      "The cluster is not ready, conflicting changes could not be resolved in time, the requested address was released by another owner not long ago, or all addresses of the requested list are in use",
    remedy: "None: the runtime tries again; if the error persists, see the reason in the message",
  },
  "not-available": {
    code: 50,
    retry: "later",
    meaning: "STATUS: the plugin cannot serve ADD requests now",
    remedy: "Fix what the message reports; running containers keep their network",
  },
  "not-available-limited": {
    code: 51,
    retry: "later",
    meaning: "STATUS: the plugin cannot serve ADD requests now, and running containers may have lost connectivity",
    remedy: "Fix what the message reports",
  },
  "pool-unknown": {
    code: 101,
    retry: "no",
    meaning: "A requested IP pool does not exist, is disabled, or is of the other address family",
    remedy: "Use one of the pools listed in the message, or create the pool",
  },
  "addresses-exhausted": {
    code: 102,
    retry: "later",
    meaning: "The usable IP pools have no free address left",
    remedy: "Add a pool, or release addresses; `ipam show` of the admin tool shows the usage of each pool",
  },
  "datastore-unavailable": {
    code: 103,
    retry: "later",
    meaning: "The datastore is unreachable, or refused the request",
    remedy: "Fix the endpoint and stage named in the message; `datastore check` of the admin tool repeats the attempt",
  },
  "address-taken": {
    code: 104,
    retry: "no",
    meaning: "The requested address is already in use, or another one is kept for the pod",
    remedy: "Request another address, remove the owner named in the message, or give up the kept address",
  },
  "address-outside-pools": {
    code: 105,
    retry: "no",
    meaning: "The requested address is outside all enabled IP pools",
    remedy: "Request an address inside one of the pools listed in the message",
  },
  "interface-exists": {
    code: 106,
    retry: "no",
    meaning: "The container already has an interface with the requested name",
    remedy: "Choose another CNI_IFNAME, or remove the interface",
  },
  "kernel-refused": {
    code: 107,
    retry: "no",
    meaning: "The kernel refused a change to links, addresses, routes or rules",
    remedy: "See the kernel's error in the message",
  },
  "delegate-failed": {
    code: 108,
    retry: "no",
    meaning:
      "Another plugin that this one calls was not found, could not be run, timed out, or returned an invalid result",
    remedy: "Check that the plugin named in the message is in CNI_PATH and works",
  },
  "check-failed": {
    code: 109,
    retry: "no",
    meaning: "CHECK: the container's network differs from what ADD set up",
    remedy: "Recreate the container, or repair the differences listed in the message",
  },
  "not-ready": {
    code: 110,
    retry: "later",
    meaning: "A readiness gate did not become ready in time",
    remedy: "Check the service at the URL named in the message",
  },
  interrupted: {
    code: 111,
    retry: "later",
    meaning: "A signal stopped the process before it had finished",
    remedy: "None: the caller repeats the call, or calls DEL",
  },
  "record-malformed": {
    code: 112,
    retry: "no",
    meaning: "A record in the datastore is malformed",
    remedy: "Correct the record at the key named in the message, or remove it if it is not needed",
  },
  "resource-invalid": {
    code: 113,
    retry: "no",
    meaning: "The given resource is invalid, or changes an immutable field",
    remedy: "Correct the fields listed in the message",
  },
  "resource-changed": {
    code: 114,
    retry: "after reading again",
    meaning: "The resource was changed by another writer after it was read",
    remedy: "Get the resource again and repeat the change, or leave out its `resourceVersion` to overwrite it",
  },
  "resource-in-use": {
    code: 115,
    retry: "no",
    meaning: "The resource cannot be deleted while it is in use",
    remedy: "Remove what the message lists, or use `--force` if the command supports it",
  },
  "record-too-large": {
    code: 116,
    retry: "no",
    meaning: "A record exceeds the size limit of the datastore",
    remedy: "Make the resource named in the message smaller, or raise the limit of the datastore",
  },
  "resource-exists": {
    code: 117,
    retry: "no",
    meaning: "The resource to create already exists",
    remedy: "Use `apply` or `replace` to change it, or choose another name for the new one",
  },
  "resource-missing": {
    code: 118,
    retry: "no",
    meaning: "The resource does not exist, or was deleted by another writer after it was read",
    remedy: "Check the name and the namespace; use `apply` or `create` to create it",
  },
  "api-unavailable": {
    code: 119,
    retry: "later",
    meaning: "The Kubernetes API is unreachable, or refused the request",
    remedy: "Fix the stage named in the message: the server, the certificates, the credentials or the role",
  },
  "host-port-taken": {
    code: 120,
    retry: "no",
    meaning: "A requested host port is already mapped to another container",
    remedy: "Choose another host port, or remove the container named in the message",
  },
  "annotation-invalid": {
    code: 121,
    retry: "no",
    meaning: "An annotation of the pod or its namespace is malformed, or requests what the network does not allow",
    remedy:
      "Correct or remove the annotation named in the message; a new pod of a controller gets the one of its template",
  },
  internal: {
    code: 999,
    retry: "no",
    meaning: "A bug in the product",
    remedy: "Report it with the message and the log",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorKind = keyof typeof ERROR_TABLE;

/** A failure that a person can act on: what was attempted, and why it failed. */
export class PluginError extends Error {
  override readonly name = "PluginError";
  readonly kind: ErrorKind;
  readonly details: string;

  constructor(kind: ErrorKind, message: string, more: { details?: string; cause?: unknown } = {}) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.details = more.details ?? "";
  }

  get cniCode(): number {
    return ERROR_TABLE[this.kind].code;
  }

  get retry(): Retry {
    return ERROR_TABLE[this.kind].retry;
  }
}

/** A failure reported by another plugin: its code and its message are passed on unchanged. */
export class ForeignError extends Error {
  override readonly name = "ForeignError";
  readonly cniCode: number;
  readonly details: string;

  constructor(code: number, message: string, details = "") {
    super(message);
    this.cniCode = code;
    this.details = details;
  }
}

/** A failure as it is reported to the caller of a plugin. */
export interface CniError {
  readonly code: number;
  readonly msg: string;
  readonly details: string;
}

/** Converts anything thrown into the form that is reported; errors of other types count as `internal`. */
export function cniErrorOf(failure: unknown): CniError {
  if (failure instanceof PluginError || failure instanceof ForeignError) {
    return { code: failure.cniCode, msg: failure.message, details: failure.details };
  }
  const code = ERROR_TABLE.internal.code;
  if (failure instanceof Error) {
    return { code, msg: failure.message || failure.name, details: failure.name };
  }
  return { code, msg: String(failure), details: "" };
}

/** The text of an error as the user sees it. */
export function describeFailure(failure: unknown): string {
  if (failure instanceof PluginError && failure.details !== "") return `${failure.message} (${failure.details})`;
  return failure instanceof Error ? failure.message : String(failure);
}
