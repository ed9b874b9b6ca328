/**
 * Nothing in the environment changes whom this program trusts, where its
 * requests go, or which code it runs.
 *
 * A runtime is often started with a proxy or with root certificates for pulling
 * images, and the plugins inherit its variables. The language runtime reads them
 * at every request: with a proxy it would send etcd's password there, with
 * NODE_TLS_REJECT_UNAUTHORIZED=0 it would verify no certificate.
 */
import { unsetVariable } from "../system-call.ts";

const PROXIES = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] as const;
const TRUST = ["NODE_TLS_REJECT_UNAUTHORIZED", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"] as const;
const REMOVED = [...PROXIES, ...TRUST] as const;

type Environment = Readonly<Record<string, string | undefined>>;

/** Removes these variables from this process's environment; returns the original environment, for other programs. */
export function removeUntrustedVariables(): Environment {
  const present = REMOVED.filter((name) => process.env[name] !== undefined);
  if (present.length === 0) return process.env;
  const given = { ...process.env };
  for (const name of present) {
    delete process.env[name];
    unsetVariable(name);
  }
  return given;
}

/** By which the node agent and its unit tune the language runtime. */
export const TUNING_VARIABLES = ["BUN_JSC_forceRAMSize", "BUN_JSC_jitPolicyScale", "BUN_JSC_useFTLJIT"] as const;
/** Set by Bun's installer in many shells; it has no effect on a compiled program. */
const HARMLESS = new Set<string>([...TUNING_VARIABLES, "BUN_INSTALL"]);

/** A variable by which the language runtime loads other code, opens a debugger or prints requests with their secrets. */
export function codeLoadingVariable(environment: Environment): string | undefined {
  for (const name in environment) if (name.startsWith("BUN_") && !HARMLESS.has(name)) return name;
  return undefined;
}
