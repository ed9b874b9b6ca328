/** Decodes the command line of the sidecar. Pure. */

import { AGENT_SOCKET, AUTHORIZATION_SOCKET, SIDECAR_PORT } from "../alp/mesh/sidecar-parts.ts";
import type { LogLevel } from "../log/line.ts";
import { quoted } from "../quote.ts";

export interface SidecarOptions {
  /** The socket of the node agent. */
  readonly agent: string;
  /** The socket that Envoy connects to. */
  readonly listen: string;
  /** A second one, with the name that filters of earlier releases have. */
  readonly alsoListen?: string;
  readonly trustDomain: string;
  readonly healthPort: number;
  readonly logLevel: LogLevel;
}

export type SidecarRequest =
  | { readonly kind: "version" | "help" }
  | { readonly kind: "wrong"; readonly problem: string }
  | { readonly kind: "run"; readonly options: SidecarOptions };

export const DEFAULT_OPTIONS: SidecarOptions = {
  agent: AGENT_SOCKET,
  listen: AUTHORIZATION_SOCKET,
  trustDomain: "cluster.local",
  healthPort: SIDECAR_PORT,
  logLevel: "INFO",
};

export function readSidecarArguments(args: readonly string[]): SidecarRequest {
  const [first] = args;
  if (args.length === 1 && (first === "-v" || first === "--version")) return { kind: "version" };
  if (args.length === 1 && (first === "-h" || first === "--help")) return { kind: "help" };
  return withOptions(DEFAULT_OPTIONS, args);
}

/** Every option has a value: the next argument, or after "=". */
function withOptions(options: SidecarOptions, args: readonly string[]): SidecarRequest {
  const [first, ...rest] = args;
  if (first === undefined) return { kind: "run", options };
  const at = first.indexOf("=");
  const [name, value, others] =
    at < 0 ? [first, rest[0], rest.slice(1)] : [first.slice(0, at), first.slice(at + 1), rest];
  const option = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
  if (option === undefined) return wrong(`Unknown argument ${quoted(first)}`);
  if (value === undefined || (at < 0 && value.startsWith("--"))) {
    return wrong(`Option ${quoted(name)} needs a value: ${option.expected}`);
  }
  const decoded = option.decode(value);
  if (decoded === undefined) {
    return wrong(`Invalid value ${quoted(value)} of option ${quoted(name)}: expected ${option.expected}`);
  }
  return withOptions({ ...options, ...decoded }, others);
}

function wrong(problem: string): SidecarRequest {
  return { kind: "wrong", problem };
}

interface Option {
  readonly expected: string;
  /** `undefined`: the value cannot be used. */
  readonly decode: (value: string) => Partial<SidecarOptions> | undefined;
}

const LEVELS: readonly LogLevel[] = ["ERROR", "WARNING", "INFO", "DEBUG"];
const PATH = "an absolute path";

const OPTIONS: Readonly<Record<string, Option>> = {
  "--agent": { expected: PATH, decode: (agent) => (agent.startsWith("/") ? { agent } : undefined) },
  "--listen": { expected: PATH, decode: (listen) => (listen.startsWith("/") ? { listen } : undefined) },
  "--also-listen": { expected: PATH, decode: (path) => (path.startsWith("/") ? { alsoListen: path } : undefined) },
  "--trust-domain": {
    expected: "the name of a trust domain in lower case, or * for every one",
    decode: (trustDomain) => (/^(\*|[a-z0-9._-]+)$/.test(trustDomain) ? { trustDomain } : undefined),
  },
  "--health-port": {
    expected: "a port, or 0 for none",
    decode: (text) => (/^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? { healthPort: Number(text) } : undefined),
  },
  "--log-level": {
    expected: LEVELS.join(", "),
    decode: (text) => {
      const logLevel = LEVELS.find((level) => level === text.toUpperCase());
      return logLevel === undefined ? undefined : { logLevel };
    },
  },
};
