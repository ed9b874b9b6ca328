/**
 * Datastore and readiness gates are spoken to directly.
 *
 * A runtime is often started with a proxy for pulling images, and the plugins
 * inherit it. `fetch` would send every request through it, those to this very
 * host included; it looks into the environment at each.
 */
const NAMES = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] as const;

/** Takes the proxies out of the environment; answers it as it was, for other programs. */
export function forgetProxies(): Readonly<Record<string, string | undefined>> {
  if (NAMES.every((name) => process.env[name] === undefined)) return process.env;
  const given = { ...process.env };
  for (const name of NAMES) delete process.env[name];
  return given;
}
