/** The text format of Prometheus. Pure. */
export type MetricType = "gauge" | "counter";

/** `labels`: as `labelsOf()` formats them; empty for none. */
export type Sample = readonly [labels: string, value: number];

/** `program`: its name is the beginning of the metric's. */
export function metricText(
  program: string,
  { name, type, help }: { readonly name: string; readonly type: MetricType; readonly help: string },
  samples: readonly Sample[],
): string {
  const full = `${program.replaceAll("-", "_")}_${name}`;
  const lines = samples.map(([labels, value]) => `${full}${labels} ${value}\n`).join("");
  return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${lines}`;
}

export function labelsOf(values: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `{${pairs.join(",")}}`;
}
