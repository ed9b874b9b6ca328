/** The operator of one process: the election, and what follows and changes the cluster while it leads. */
import { identity } from "../identity.ts";
import { Elector } from "../kube/election/elector.ts";
import type { OperatorReport } from "./report.ts";
import { type OperatorMeans, RunningOperator } from "./run-operator.ts";

export interface OperatorProcessMeans extends Omit<OperatorMeans, "namespaces" | "leadership"> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Of this process; unique. */
  readonly identity: string;
}

export class OperatorProcess {
  readonly elector: Elector;
  readonly operator: RunningOperator;

  constructor(private readonly means: OperatorProcessMeans) {
    const namespace = means.environment["POD_NAMESPACE"] ?? identity.operator;
    this.elector = new Elector({ ...means, namespace, name: identity.operator });
    this.operator = new RunningOperator({
      ...means,
      namespaces: { operator: namespace, components: identity.systemNamespace },
      leadership: this.elector,
    });
  }

  /** For health and metrics. */
  get report(): OperatorReport {
    const { operator, elector, means } = this;
    return { state: operator.state, isLeading: elector.isLeading(), electedAt: elector.askedAt, now: means.elapsed() };
  }

  /** Resolves when the signal is aborted and the lease is given back. */
  async run(): Promise<void> {
    // The lease outlives the writer.
    const written = new AbortController();
    const electing = this.elector.run(written.signal);
    try {
      await this.operator.run();
    } finally {
      written.abort();
      await electing;
    }
  }
}
