/**
 * Every way a command can fail: one table from error kind to CNI error code, and whether another attempt is worthwhile.
 *
 * CNI reserves codes 0-99; 100 and up are ours; 999 is what CNI libraries use
 * for anything untyped. `docs/errors.md` is written from this table.
 */
interface ErrorRow {
  readonly code: number;
  /** What happened, for the reader of the error. */
  readonly meaning: string;
  /** What the reader does about it. */
  readonly remedy: string;
  readonly retry: Retry;
}

/**
 * Whether another attempt is worthwhile: "no" until somebody changes something; "later", because the cause may pass by
 * itself; "after reading again", because the attempt rested on something that has changed since.
 */
export type Retry = "no" | "later" | "after reading again";

export const ERROR_TABLE = {
  "version-incompatible": {
    code: 1,
    retry: "no",
    meaning: "The network config asks for a CNI version that this plugin, or this command, does not speak",
    remedy: "Set `cniVersion` to one of the versions the message lists",
  },
  "field-unsupported": {
    code: 2,
    retry: "no",
    meaning: "The network config uses a field, or a value of a field, that this plugin cannot honour",
    remedy: "Remove the field the message names, or give it one of the values listed",
  },
  "container-unknown": {
    code: 3,
    retry: "no",
    meaning: "The container does not exist any more",
    remedy: "Nothing: the runtime need not call DEL for it",
  },
  "environment-invalid": {
    code: 4,
    retry: "no",
    meaning: "A CNI_* environment variable is missing or malformed",
    remedy: "The runtime that runs the plugin must set the variables the message names",
  },
  "io-failure": {
    code: 5,
    retry: "no",
    meaning: "Standard input could not be read, or a file could not be read or written",
    remedy: "Check the path and the permissions that the message names",
  },
  "decode-failure": {
    code: 6,
    retry: "no",
    meaning: "The network config, or a plugin's answer, is not JSON of the expected shape",
    remedy: "Correct the JSON at the place the message names",
  },
  "config-invalid": {
    code: 7,
    retry: "no",
    meaning: "A value in the network config is wrong",
    remedy: "Correct the fields the message lists; the admin tool's `config check` shows their place in the file",
  },
  "netns-invalid": {
    code: 8,
    retry: "no",
    meaning: "CNI_NETNS is not a network namespace of a container, or is the host's own",
    remedy: "Give the container a network namespace of its own",
  },
  "try-again-later": {
    code: 11,
    retry: "later",
    meaning: "The cluster is not ready, or a lost race could not be settled in time",
    remedy: "Nothing: the runtime tries again; if it lasts, look at the reason in the message",
  },
  "not-available": {
    code: 50,
    retry: "later",
    meaning: "STATUS: the plugin cannot serve an ADD now",
    remedy: "Repair what the message names; running containers keep their network",
  },
  "not-available-limited": {
    code: 51,
    retry: "later",
    meaning: "STATUS: the plugin cannot serve an ADD now, and running containers may have lost connectivity",
    remedy: "Repair what the message names",
  },
  "pool-unknown": {
    code: 101,
    retry: "no",
    meaning: "A pool that was asked for does not exist, is disabled, or is of the other address family",
    remedy: "Name one of the pools the message lists, or create the pool",
  },
  "addresses-exhausted": {
    code: 102,
    retry: "later",
    meaning: "No free address is left in the pools that may be used",
    remedy: "Add a pool, or release addresses; `ipam show` of the admin tool shows how full each pool is",
  },
  "datastore-unavailable": {
    code: 103,
    retry: "later",
    meaning: "The datastore could not be reached, or refused the request",
    remedy: "Repair the endpoint and stage the message names; `datastore check` of the admin tool repeats the attempt",
  },
  "address-taken": {
    code: 104,
    retry: "no",
    meaning: "The requested address belongs to somebody else",
    remedy: "Ask for another address, or remove the owner the message names",
  },
  "address-outside-pools": {
    code: 105,
    retry: "no",
    meaning: "The requested address lies in no enabled pool",
    remedy: "Ask for an address inside one of the pools the message lists",
  },
  "interface-exists": {
    code: 106,
    retry: "no",
    meaning: "The container already has an interface of the requested name",
    remedy: "Choose another CNI_IFNAME, or remove the interface",
  },
  "kernel-refused": {
    code: 107,
    retry: "no",
    meaning: "The kernel refused a change to links, addresses, routes or rules",
    remedy: "Read the kernel's own words in the message",
  },
  "delegate-failed": {
    code: 108,
    retry: "no",
    meaning: "Another plugin that this one relies on could not be found, run, or understood in time",
    remedy: "Check that the plugin named in the message is in CNI_PATH and works",
  },
  "check-failed": {
    code: 109,
    retry: "no",
    meaning: "CHECK: the container's network is not as ADD left it",
    remedy: "Recreate the container, or repair the differences the message lists",
  },
  "not-ready": {
    code: 110,
    retry: "later",
    meaning: "A readiness gate did not become ready in time",
    remedy: "Look at the service behind the URL the message names",
  },
  interrupted: {
    code: 111,
    retry: "later",
    meaning: "The process was told to stop by a signal before it had finished",
    remedy: "Nothing: whoever stopped it calls again, or calls DEL",
  },
  "record-malformed": {
    code: 112,
    retry: "no",
    meaning: "A record in the datastore is not of the shape it must have",
    remedy: "Look at the record at the key the message names: correct it, or remove it if it is not needed",
  },
  "resource-invalid": {
    code: 113,
    retry: "no",
    meaning: "A resource that was given is wrong, or may not be changed in this way",
    remedy: "Correct the fields the message lists",
  },
  "resource-changed": {
    code: 114,
    retry: "after reading again",
    meaning: "The resource was changed by somebody else after it was read",
    remedy: "Get the resource as it is now, repeat the change; or leave out its `resourceVersion` to overwrite it",
  },
  "resource-in-use": {
    code: 115,
    retry: "no",
    meaning: "The resource cannot go as long as others use it",
    remedy: "Remove what the message lists, or insist with `--force` where the command has it",
  },
  "record-too-large": {
    code: 116,
    retry: "no",
    meaning: "A record is larger than the datastore takes",
    remedy: "Give the resource the message names fewer or shorter values, or raise the limit of the datastore",
  },
  "resource-exists": {
    code: 117,
    retry: "no",
    meaning: "The resource to create exists already",
    remedy: "Use `apply` or `replace` to change it, or give the new one another name",
  },
  "resource-missing": {
    code: 118,
    retry: "no",
    meaning: "The resource does not exist, or was deleted by somebody else after it was read",
    remedy: "Check the name and the namespace; use `apply` or `create` to make it",
  },
  "host-port-taken": {
    code: 120,
    retry: "no",
    meaning: "A host port that was asked for already leads to another container",
    remedy: "Choose another host port, or remove the container the message names",
  },
  internal: {
    code: 999,
    retry: "no",
    meaning: "A fault in the product itself",
    remedy: "Report it with the message and the log",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorKind = keyof typeof ERROR_TABLE;

/** A failure a person can act on: what was attempted, and why it stopped. */
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

/** A failure that another plugin reported: its code and its words are passed on as they came. */
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

/** What the caller of a plugin learns of a failure. */
export interface CniError {
  readonly code: number;
  readonly msg: string;
  readonly details: string;
}

/** Turns anything thrown into the one shape that leaves the process; what is not ours counts as `internal`. */
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
