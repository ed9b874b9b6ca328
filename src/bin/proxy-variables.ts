/**
 * Datastore and readiness gates are accessed without a proxy.
 *
 * A runtime is often started with a proxy for pulling images, and the plugins
 * inherit its variables. `fetch` reads them at every request and would use the
 * proxy even for requests to this host.
 */
const NAMES = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] as const;

/** Removes the proxies from this process's environment; returns the original environment, for other programs. */
export function removeProxyVariables(): Readonly<Record<string, string | undefined>> {
  if (NAMES.every((name) => process.env[name] === undefined)) return process.env;
  const given = { ...process.env };
  for (const name of NAMES) delete process.env[name];
  return given;
}
