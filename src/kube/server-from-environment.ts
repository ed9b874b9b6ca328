/** The URL of the API as the environment of every pod has it; `undefined` outside a pod. */
export function serverFromEnvironment(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  return host && port ? `https://${host.includes(":") ? `[${host}]` : host}:${port}` : undefined;
}
