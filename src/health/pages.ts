/** The pages of a program that serves its health and its metrics. */
export interface HealthReply {
  readonly status: 200 | 503;
  readonly text: string;
}

/** By path; `undefined`: there is no such page. */
export type Pages = (path: string) => HealthReply | undefined;

export function healthPages({
  liveness,
  readiness,
}: Readonly<Record<"liveness" | "readiness", () => HealthReply>>): Pages {
  return (path) => {
    if (path === "/liveness") return liveness();
    return path === "/readiness" ? readiness() : undefined;
  };
}

export function metricsPages(text: () => string): Pages {
  return (path) => (path === "/metrics" ? { status: 200, text: text() } : undefined);
}
