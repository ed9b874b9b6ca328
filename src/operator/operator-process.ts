/** The operator of one process: the election, and what follows and changes the cluster while it leads. */
import { identity } from "../identity.ts";
import { Elector } from "../kube/election/elector.ts";
import type { OperatorReport } from "./health-report.ts";
import { type OperatorOptions, RunningOperator } from "./run-operator.ts";

export interface OperatorProcessOptions extends Omit<OperatorOptions, "namespaces" | "leadership"> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Of this process; unique. */
  readonly identity: string;
}

export class OperatorProcess {
  readonly elector: Elector;
  readonly operator: RunningOperator;

  constructor(private readonly options: OperatorProcessOptions) {
    const namespace = options.environment["POD_NAMESPACE"] ?? identity.operator;
    this.elector = new Elector({ ...options, namespace, name: identity.operator });
    this.operator = new RunningOperator({
      ...options,
      namespaces: { operator: namespace, components: identity.systemNamespace },
      leadership: this.elector,
    });
  }

  /** For health and metrics. */
  get report(): OperatorReport {
    const { operator, elector, options } = this;
    return {
      state: operator.state,
      isLeading: elector.isLeading(),
      electedAt: elector.askedAt,
      now: options.elapsed(),
    };
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
