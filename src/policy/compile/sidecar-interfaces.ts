/** The kernel set of the interfaces behind which a sidecar decides about HTTP requests. It follows the endpoints. */
import { interfaceValue } from "../../linux/nftables/value.ts";
import { SIDECAR_SET, SIDECARS } from "../render/base-chains.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import type { WorkloadEndpoints } from "./workload-endpoints.ts";

/** Whose sidecar decides. */
export interface ReportingSidecars {
  /** The keys of their endpoints. */
  readonly endpoints: ReadonlySet<string>;
  /** Sidecars that reported to the previous agent and have not had the time to report again. */
  readonly recovered?: RecoveredReporting;
}

/**
 * An interface stays only if its endpoint is that of one of the pods: another pod of the same name may have come meanwhile,
 * with the same interface and without a sidecar.
 */
export interface RecoveredReporting {
  readonly interfaces: ReadonlySet<string>;
  /** The UIDs of the pods. */
  readonly pods: ReadonlySet<string>;
}

export class SidecarInterfaces {
  private reporting: ReportingSidecars = { endpoints: new Set() };
  private written: ReadonlySet<string> = new Set();

  constructor(
    private readonly builder: TableBuilder,
    private readonly workloads: WorkloadEndpoints,
  ) {
    builder.createSet(SIDECAR_SET);
  }

  setReporting(reporting: ReportingSidecars): void {
    this.reporting = reporting;
  }

  /** Returns whether an element has changed. */
  write(): boolean {
    const wanted = this.interfaces();
    const removed = this.written.difference(wanted);
    const added = wanted.difference(this.written);
    for (const name of removed) this.builder.deleteElement(SIDECARS, name);
    for (const name of added) this.builder.putElement(SIDECARS, name, { key: interfaceValue(name) });
    this.written = wanted;
    return removed.size + added.size > 0;
  }

  private interfaces(): ReadonlySet<string> {
    const { endpoints, recovered } = this.reporting;
    const names = new Set<string>();
    for (const key of endpoints) {
      const name = this.workloads.interfaceOf(key);
      if (name !== undefined) names.add(name);
    }
    for (const name of recovered?.interfaces ?? []) {
      const uid = this.workloads.endpointAt(name)?.metadata.uid;
      if (uid !== undefined && recovered?.pods.has(uid)) names.add(name);
    }
    return names;
  }
}
