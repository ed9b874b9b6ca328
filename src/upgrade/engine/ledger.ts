/**
 * The ledger of an upgrade: what is done, in a ConfigMap of the cluster, with a copy in a local file. Whoever continues an
 * upgrade knows from it alone where it stands.
 *
 * Only the holder of the Lease writes it. A write that somebody else has overtaken is refused by the API; a write whose
 * response was lost is recognized by its content.
 */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

export type RunPhase = "running" | "complete" | "rolling-back" | "rolled-back";
export type StepState = "pending" | "running" | "done" | "rolling-back" | "rolled-back";

export interface LedgerStep {
  readonly name: string;
  readonly state: StepState;
  readonly startedAt?: string;
  readonly endedAt?: string;
  /** Why it stopped. */
  readonly problem?: string;
  /** What to do about that. */
  readonly advice?: string;
}

export interface Ledger {
  readonly run: string;
  readonly phase: RunPhase;
  /** Digests of the plan and of those it replaced, the first one first. The plans are kept with the backups. */
  readonly plans: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly steps: readonly LedgerStep[];
  /** What steps have to remember, by their name. */
  readonly notes: Readonly<Record<string, Fields>>;
}

export const UPGRADE_NAMESPACE = "kube-system";
/** Of the ledger's ConfigMap and of the Lease. */
export const UPGRADE_NAME = `${identity.product}-upgrade`;

const COLLECTION = `/api/v1/namespaces/${UPGRADE_NAMESPACE}/configmaps`;
const PATH = `${COLLECTION}/${UPGRADE_NAME}`;
const KEY = "ledger.json";

export function isUnfinished({ phase }: Ledger): boolean {
  return phase === "running" || phase === "rolling-back";
}

const CONTINUE: Readonly<Record<RunPhase, string>> = {
  running: `continue: ${identity.adminTool} upgrade apply, or go back: ${identity.adminTool} upgrade rollback`,
  complete: "",
  "rolling-back": `continue: ${identity.adminTool} upgrade rollback --yes`,
  "rolled-back": "",
};

/** What to do with an upgrade: what the failure that stopped it says, or to continue; "" if it has ended. */
export function adviceOf(ledger: Ledger): string {
  const stopped = ledger.steps.find(({ advice }) => advice !== undefined);
  return (isUnfinished(ledger) ? stopped?.advice : undefined) ?? CONTINUE[ledger.phase];
}

export function withoutProblem({ problem: _, advice: __, ...step }: LedgerStep): LedgerStep {
  return step;
}

/** Called with the text of every change, after it is in the cluster. */
type LedgerCopy = (text: string, run: string) => Promise<void>;

export class LedgerStore {
  private object: Fields | undefined;

  private constructor(
    private readonly objects: ClusterObjects,
    private readonly copy: LedgerCopy,
  ) {}

  static async open(objects: ClusterObjects, copy: LedgerCopy): Promise<LedgerStore> {
    const store = new LedgerStore(objects, copy);
    store.object = await objects.read(PATH);
    return store;
  }

  get current(): Ledger | undefined {
    const text = textIn(this.object);
    return text === undefined ? undefined : ledgerIn(text);
  }

  /** No write if it is the same. */
  async write(ledger: Ledger): Promise<void> {
    const text = `${JSON.stringify(ledger, undefined, 1)}\n`;
    if (textIn(this.object) === text) return;
    this.object = await this.store(text);
    await this.copy(text, ledger.run);
  }

  private async store(text: string): Promise<Fields> {
    const before = textIn(this.object);
    try {
      return await this.send(text);
    } catch (failure) {
      if (!(failure instanceof PluginError)) throw failure;
      this.object = await this.objects.read(PATH);
      const now = textIn(this.object);
      if (this.object !== undefined && now === text) return this.object;
      if (failure.kind !== "resource-changed") throw failure;
      if (now !== before) throw overtaken(failure);
      return this.send(text);
    }
  }

  private send(text: string): Promise<Fields> {
    const { object } = this;
    const data = { [KEY]: text };
    if (object !== undefined) return this.objects.replace(PATH, { ...object, data });
    const metadata = { name: UPGRADE_NAME, namespace: UPGRADE_NAMESPACE, labels: UPGRADE_LABELS };
    return this.objects.create(COLLECTION, { apiVersion: "v1", kind: "ConfigMap", metadata, data });
  }
}

export const UPGRADE_LABELS = { "app.kubernetes.io/managed-by": identity.adminTool } as const;

function overtaken(cause: PluginError): PluginError {
  const message = "Cannot record the progress of the upgrade: another process has changed the ledger";
  return new PluginError("resource-changed", message, { details: "see upgrade status", cause });
}

function textIn(object: Fields | undefined): string | undefined {
  const data = object?.["data"];
  const text = isObject(data) ? data[KEY] : undefined;
  return typeof text === "string" ? text : undefined;
}

function ledgerIn(text: string): Ledger {
  try {
    return parseJson(text) as Ledger;
  } catch (cause) {
    const message = `Cannot read the ledger of the upgrade: ConfigMap ${UPGRADE_NAMESPACE}/${UPGRADE_NAME} is damaged`;
    throw new PluginError("record-malformed", message, { details: `put "${KEY}" back from the local copy`, cause });
  }
}
