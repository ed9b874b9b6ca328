/**
 * Compares the release of the tool with that of the cluster before a command does anything. It costs no round trip of its own:
 * the version is read with the first thing that the command reads. A version that cannot be read blocks nothing.
 */

import type { Datastore, Snapshot, Wanted } from "../../datastore/datastore.ts";
import { EtcdFailure, isSilence } from "../../datastore/etcd/failure.ts";
import { transactOn } from "../../datastore/transact.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION } from "../../identity.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import type { KubeClient } from "../../kube/api.ts";
import { clusterInformation, clusterVersion } from "../../model/cluster-information.ts";
import { CLUSTER_INFORMATION_KEY } from "../../model/keys.ts";
import type { Command, Given } from "../main/command.ts";
import type { Context } from "../main/context.ts";
import { ALLOW_MISMATCH, compareWithCluster } from "./compare-with-cluster.ts";

const PATH = `/apis/${API_VERSION}/clusterinformations/default`;

/** The context of a command that refuses to work on a cluster of a later release. */
export function checkingVersion(context: Context, given: Given, command: Command): Context {
  if (command.versionCheck === "none" || given.switches.has(ALLOW_MISMATCH)) return context;
  let isDone = false;
  const judge = (value: string | undefined) => {
    if (isDone) return;
    isDone = true;
    const comparison = compareWithCluster(context.version, versionIn(value));
    if (comparison.kind === "tool is older") {
      throw new PluginError("version-incompatible", comparison.message, { details: comparison.remedy });
    }
    if (comparison.kind === "tool is newer" && command.versionCheck !== "refuse") {
      context.stderr(`Warning: ${comparison.message}\n`);
    }
  };
  let hasDatastore = false;
  return {
    ...context,
    async openDatastore(settings) {
      hasDatastore = true;
      const store = await context.openDatastore(settings);
      return isDone ? store : checkedStore(store, judge);
    },
    async openKubeClient(access) {
      const client = await context.openKubeClient(access);
      if (!isDone && !hasDatastore) judge(await readFromApi(client));
      return client;
    },
  };
}

/** `value`: the record of ClusterInformation. */
export function versionIn(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : clusterVersion(clusterInformation.read(value, CLUSTER_INFORMATION_KEY));
  } catch {
    return undefined;
  }
}

async function readFromApi(client: KubeClient): Promise<string | undefined> {
  try {
    const { status, text } = await client.request({ method: "GET", path: PATH, attempt: "once" });
    return status === 200 ? text : undefined;
  } catch {
    return undefined;
  }
}

function checkedStore(store: Datastore, judge: (value: string | undefined) => void): Datastore {
  let isJudged = false;
  const judgeOnce = (value: string | undefined) => {
    isJudged = true;
    judge(value);
  };
  const judgeFirst = async () => {
    if (!isJudged) judgeOnce((await readOrNothing(store))?.answers[0]?.[0]?.value);
  };
  const checked: Datastore = {
    ...(store.isOrchestratorApi === undefined ? {} : { isOrchestratorApi: store.isOrchestratorApi }),
    ...(store.prefetch === undefined ? {} : { prefetch: (prefixes) => store.prefetch?.(prefixes) }),
    atomicity: store.atomicity,
    async read(wanted, at) {
      if (isJudged) return store.read(wanted, at);
      const { value, snapshot } = await readBoth(store, wanted, at);
      judgeOnce(value);
      return snapshot;
    },
    async commit(changes) {
      await judgeFirst();
      return store.commit(changes);
    },
    transact: (wanted, decide) => (isJudged ? store.transact(wanted, decide) : transactOn(checked, wanted, decide)),
    clock: () => store.clock?.(),
    async *watch(prefix, from, signal) {
      await judgeFirst();
      yield* store.watch(prefix, from, signal);
    },
    close: () => store.close(),
  };
  return checked;
}

/** If the read fails with the version in it, it is made as the command asked for it; but not if the server was not reached. */
async function readBoth(
  store: Datastore,
  wanted: readonly Wanted[],
  at: string | undefined,
): Promise<{ readonly value: string | undefined; readonly snapshot: Snapshot }> {
  try {
    const { revision, answers } = await store.read([...wanted, WANTED_CLUSTER], at);
    return { value: answers.at(-1)?.[0]?.value, snapshot: { revision, answers: answers.slice(0, -1) } };
  } catch (failure) {
    if (isUnreached(failure)) throw failure;
    return { value: undefined, snapshot: await store.read(wanted, at) };
  }
}

/** Then the same read would wait as long again. */
function isUnreached(failure: unknown): boolean {
  const cause = failure instanceof PluginError ? failure.cause : undefined;
  return cause instanceof EtcdFailure && (cause.diagnosis.stage === "connect" || isSilence(cause));
}

async function readOrNothing(store: Datastore): Promise<Snapshot | undefined> {
  try {
    return await store.read([WANTED_CLUSTER]);
  } catch {
    return undefined;
  }
}
