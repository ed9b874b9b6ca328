/**
 * An ADD of the earlier release that had begun before its storage was locked, and writes to it after the copy. The upgrade
 * must copy it, unless somebody has used the present storage meanwhile: then it names the pod, which has to be deleted.
 */
import { identity } from "../../../src/identity.ts";
import type { SimulatedApi } from "../../datastore/simulated-api.ts";
import type { Random } from "../../schedule/random.ts";
import type { Scheduler } from "../../schedule/scheduler.ts";
import { INFORMATIONS } from "./upgrade-scenario.ts";

const NAME = "late";
const POD = `/api/v1/namespaces/shop/pods/${NAME}`;
const HANDLE = `k8s-pod-network.${NAME}`;
const BLOCK = "ipamblocks/192-168-77-64-26";
const ORDINAL = 7;
const ADDRESS = "192.168.77.71";
const LOOK = 200;
/** As the time that the upgrade is told to wait. */
const LONGEST_ADD = 25_000;

export class LateAdd {
  private isWritten = false;
  private isDeleted = false;

  constructor(
    private readonly api: SimulatedApi,
    scheduler: Scheduler,
    random: Random,
  ) {
    const took = random.below(LONGEST_ADD);
    const untilLocked = () => {
      if (isLocked(api.object(INFORMATIONS.former)?.["spec"])) scheduler.after(took, () => this.write());
      else scheduler.after(LOOK, untilLocked);
    };
    untilLocked();
  }

  isNamedIn(message: string): boolean {
    const isNamed = message.includes(`pod shop/${NAME} has ${ADDRESS}`);
    return isNamed && message.includes(`delete pod ${NAME} --force --grace-period=0`);
  }

  deletePod(): void {
    this.isDeleted = true;
    this.api.remove(POD);
  }

  /** At the end of the upgrade. */
  problems(): readonly string[] {
    if (!this.isWritten || this.isDeleted) return [];
    const holder = holderIn(this.api.object(`/apis/${identity.apiGroup}/v3/${BLOCK}`)?.["spec"]);
    return holder === HANDLE ? [] : [`the address of a late ADD is lost: ${ADDRESS} is held by ${holder ?? "nobody"}`];
  }

  private write(): void {
    const path = `/apis/crd.${identity.apiGroup}/v1/${BLOCK}`;
    const spec = structuredClone(this.api.object(path)?.["spec"]) as BlockSpec;
    if (spec.allocations[ORDINAL] != null) return;
    const secondary = { node: "two", pod: NAME, namespace: "shop" };
    spec.allocations[ORDINAL] = spec.attributes.push({ handle_id: HANDLE, secondary }) - 1;
    spec.unallocated = spec.unallocated.filter((ordinal) => ordinal !== ORDINAL);
    this.api.patch(path, { spec });
    this.api.create(`/apis/crd.${identity.apiGroup}/v1/ipamhandles`, {
      apiVersion: `crd.${identity.apiGroup}/v1`,
      kind: "IPAMHandle",
      metadata: { name: HANDLE },
      spec: { handleID: HANDLE, block: { "192.168.77.64/26": 1 }, deleted: false },
    } as never);
    this.api.create("/api/v1/namespaces/shop/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: NAME, namespace: "shop" },
      spec: { nodeName: "two", containers: [{ name: "main", image: "main:1" }] },
    } as never);
    this.api.patch(`${POD}/status`, { status: { phase: "Running", podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] } });
    this.isWritten = true;
  }
}

interface BlockSpec {
  readonly allocations: (number | null | undefined)[];
  readonly attributes: { readonly handle_id?: string; readonly secondary?: object }[];
  unallocated: readonly number[];
}

function isLocked(spec: unknown): boolean {
  return (spec as { readonly datastoreReady?: boolean } | undefined)?.datastoreReady === false;
}

function holderIn(spec: unknown): string | undefined {
  const { allocations, attributes } = (spec ?? { allocations: [], attributes: [] }) as BlockSpec;
  return attributes[allocations[ORDINAL] ?? -1]?.handle_id;
}
