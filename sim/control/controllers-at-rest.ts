/** What the controllers still have to do, decided by their own functions from the truth of a simulation, not from copies of it. */
import { chooseControllers } from "../../src/controllers/choose-controllers.ts";
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import {
  type Facts,
  ORCHESTRATOR_KINDS,
  type OrchestratorValues,
  STORED_KINDS,
  type StoredValues,
} from "../../src/controllers/facts.ts";
import { controllerSettings } from "../../src/controllers/settings.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { type HeldRecord, holdEntry, KindSnapshot } from "../../src/datastore/replica/kind-snapshot.ts";
import type { KindSource, KindTable } from "../../src/datastore/replica/kinds.ts";
import type { ReplicaSnapshot } from "../../src/datastore/replica.ts";

export interface ControllersTruth {
  /** Undisturbed. */
  readonly store: Pick<Datastore, "read">;
  /** The orchestrator's objects by `orchestratorMapping()`, undisturbed. */
  readonly orchestrator: Pick<Datastore, "read">;
  readonly isEtcd: boolean;
  readonly environment?: Readonly<Record<string, string>>;
}

/** One line for each change that is still due; empty once every record is as it should be. */
export async function dueChanges({
  store,
  orchestrator,
  isEtcd,
  environment = {},
}: ControllersTruth): Promise<readonly string[]> {
  const facts: Facts = {
    orchestrator: await snapshotsOf<OrchestratorValues>(orchestrator, ORCHESTRATOR_KINDS),
    stored: await snapshotsOf<StoredValues>(store, STORED_KINDS),
  };
  const configuration = facts.stored.configurations.get(CONFIGURATION_KEY);
  const settings = controllerSettings(environment, configuration?.spec, { isEtcd });
  return chooseControllers(settings, isEtcd).controllers.flatMap(({ controller }) =>
    [...controller.allKeys(facts)].flatMap((key) => {
      const proposal = controller.decide(key, facts);
      return proposal === undefined ? [] : [`${controller.name}: not ${proposal.reason} (${key})`];
    }),
  );
}

async function snapshotsOf<Values>(
  store: Pick<Datastore, "read">,
  kinds: KindTable<Values>,
): Promise<ReplicaSnapshot<Values>> {
  const rows = Object.entries(kinds) as [string, KindSource<unknown>][];
  const snapshots = rows.map(async ([kind, source]) => [kind, await snapshotOf(store, source)] as const);
  return Object.fromEntries(await Promise.all(snapshots)) as ReplicaSnapshot<Values>;
}

async function snapshotOf<Value>(
  store: Pick<Datastore, "read">,
  source: KindSource<Value>,
): Promise<KindSnapshot<Value>> {
  const { revision, answers } = await store.read([{ kind: "prefix", prefix: source.prefix }]);
  const held = (answers[0] ?? []).flatMap((entry): [string, HeldRecord<Value>][] => {
    const record = holdEntry(entry, source, undefined);
    return record === undefined ? [] : [[entry.key, record]];
  });
  return KindSnapshot.empty<Value>().with(revision, new Map(held));
}
