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

/** Takes at most this share of the time, whoever asks how often. */
const METRICS_SHARE = 0.1;

/** `elapsed`: milliseconds that never go back. */
export function metricsPages(text: () => string, elapsed: () => number = () => performance.now()): Pages {
  let last = { text: "", until: Number.NEGATIVE_INFINITY };
  const current = () => {
    const begun = elapsed();
    if (begun < last.until) return last.text;
    const now = text();
    const ended = elapsed();
    last = { text: now, until: ended + (ended - begun) * (1 / METRICS_SHARE - 1) };
    return now;
  };
  return (path) => (path === "/metrics" ? { status: 200, text: current() } : undefined);
}
