/**
 * How many calls of plugins the agent has served, for its metrics. The call server counts; the other process of the agent
 * serves the metrics and reads the counts from a file, so that neither waits for the other. Pure.
 */
import { labelsOf, metricText } from "../../health/metrics.ts";
import { identity } from "../../identity.ts";

export interface ServedCalls {
  readonly plugin: string;
  /** `ADD`, `DEL` … */
  readonly command: string;
  readonly result: "success" | "failure";
  readonly calls: number;
  readonly milliseconds: number;
}

export interface ServedCall {
  readonly plugin: string;
  readonly command: string;
  readonly exitCode: number;
  readonly milliseconds: number;
}

export class ServedCallCounter {
  readonly #rows = new Map<string, ServedCalls>();

  add({ plugin, command, exitCode, milliseconds }: ServedCall): void {
    const result = exitCode === 0 ? "success" : "failure";
    const key = `${plugin} ${command} ${result}`;
    const before = this.#rows.get(key);
    this.#rows.set(key, {
      plugin,
      command,
      result,
      calls: (before?.calls ?? 0) + 1,
      milliseconds: (before?.milliseconds ?? 0) + milliseconds,
    });
  }

  get rows(): readonly ServedCalls[] {
    return [...this.#rows.values()];
  }
}

/** In the text format of Prometheus. */
export function servedCallMetrics(rows: readonly ServedCalls[]): string {
  const samples = (value: (row: ServedCalls) => number) =>
    rows.map((row) => {
      const { plugin, command, result } = row;
      return [labelsOf({ plugin, command, result }), value(row)] as const;
    });
  const calls = {
    name: "served_calls_total",
    type: "counter",
    help: "Calls of plugins that the agent served",
  } as const;
  const seconds = { name: "served_call_seconds_total", type: "counter", help: "Time that these calls took" } as const;
  return [
    metricText(
      identity.nodeAgent,
      calls,
      samples((row) => row.calls),
    ),
    metricText(
      identity.nodeAgent,
      seconds,
      samples((row) => row.milliseconds / 1_000),
    ),
  ].join("");
}
