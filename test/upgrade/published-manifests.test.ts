/**
 * Unedited manifests of every minor release since v3.15, as they were published, become the objects of this release without a
 * question. They are not in the repository: the variable names a clone that has their tags. What they have at the places that
 * are compared is recorded in `src/upgrade/stock/published-values.ts`, whose test needs nothing.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import type { Fields } from "../../src/kube/objects.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { variantObjects } from "../../src/operator/manifests/variants.ts";
import { objectPath } from "../../src/operator/object-kinds.ts";
import type { Facts } from "../../src/upgrade/facts.ts";
import { daemonSetOf } from "../../src/upgrade/manifest/live-manifest.ts";
import { wantedManifest } from "../../src/upgrade/manifest/plan-manifest.ts";
import { PUBLISHED_MINORS } from "../../src/upgrade/stock/published-values.ts";
import { comparedManifest, type StockVariant } from "../../src/upgrade/stock/stock-manifest.ts";
import type { TargetRelease } from "../../src/upgrade/target-release.ts";
import { VERSION } from "../../src/version.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import {
  PUBLISHED_FILES,
  publishedManifest,
  publishedManifestsProblem,
  publishedTags,
} from "../support/published-manifests.ts";

setDefaultTimeout(120_000);

const problem = publishedManifestsProblem();
const serverProblem = apiServerProblem();
const testPublished = testNeeding(problem, serverProblem);
const COMPARED = ["DaemonSet", "Deployment", "ConfigMap"];

let cluster: OlderCluster;
beforeAll(async () => {
  if (problem === undefined && serverProblem === undefined) cluster = await startOlderCluster({ definitions: "none" });
});
afterAll(() => cluster?.stop());

describe("manifests as they were published", () => {
  const { first, last } = PUBLISHED_MINORS;
  for (const { name, ...variant } of PUBLISHED_FILES)
    testPublished(`${name}: nothing is asked about, kept or lost`, async () => {
      for (const tag of publishedTags(first, last)) {
        const { obstacles, notes } = await planned(tag, name, variant);

        expect({ tag, obstacles }).toEqual({ tag, obstacles: [] });
        expect({ tag, notes: notes.filter(isAboutEdits) }).toEqual({ tag, notes: [] });
      }
    });
});

/** Containers beside ours, such as flannel, are always kept. */
function isAboutEdits(note: string): boolean {
  return /^(Kept: (spec|mount)|Not carried over)/.test(note);
}

/** As the server would store it: not by server-side apply, which refuses the variable that v3.15.0 had twice. */
async function created(object: AnyObject): Promise<Fields> {
  const path = objectPath(object);
  const request = {
    method: "POST" as const,
    path: path.slice(0, path.lastIndexOf("/")),
    query: { dryRun: "All" },
    body: JSON.stringify(object),
  };
  return JSON.parse(requireOk(await cluster.client.request(request), request));
}

async function planned(tag: string, name: string, variant: StockVariant) {
  const live = new Map<string, Fields>();
  for (const object of publishedManifest(tag, name).filter(({ kind }) => COMPARED.includes(kind)))
    live.set(objectPath(object), await created(object));
  const { datastore, network } = variant;
  const facts = {
    method: { kind: "manifest", network },
    ...{ datastore, version: tag, target: VERSION, orchestratorVersion: "v1.34.0", allowsSourceSpoofing: false },
  } as Facts;
  const release = {
    version: VERSION,
    manifest: (wanted: StockVariant) => variantObjects(wanted, VERSION),
  } as unknown as TargetRelease;
  const stock = await comparedManifest(tag, variant);
  return wantedManifest({
    ...{ live, daemonSet: daemonSetOf(live) ?? {}, facts, release, stock },
    options: { onConflict: "fail" },
  });
}
