/**
 * Unedited manifests of earlier releases, as they were published, become the objects of this release without a question. What
 * those of v3.24, v3.25 and v3.27 have at the places that are compared is recorded beside `published-facts.ts`. Whole manifests
 * of every minor release since v3.15 are not in the repository: a variable names a clone that has their tags.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Fields } from "../../src/kube/objects.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { variantObjects } from "../../src/release/manifests/variants.ts";
import { objectPath } from "../../src/release/object-kinds.ts";
import type { Facts, Obstacle } from "../../src/upgrade/engine/facts.ts";
import type { TargetRelease } from "../../src/upgrade/engine/target-release.ts";
import { daemonSetOf } from "../../src/upgrade/manifest-install/live-manifest.ts";
import { wantedManifest } from "../../src/upgrade/manifest-install/plan-manifest.ts";
import { PUBLISHED_MINORS } from "../../src/upgrade/published/published-values.ts";
import {
  type ComparedManifest,
  comparedManifest,
  type StockVariant,
  stockManifest,
} from "../../src/upgrade/published/stock-manifest.ts";
import { VERSION } from "../../src/version.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import {
  FACTS_FILE,
  isCompared,
  recordFacts,
  releasesWithFacts,
  withPublishedFacts,
} from "../support/published-facts.ts";
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

let cluster: OlderCluster;
beforeAll(async () => {
  if (serverProblem === undefined) cluster = await startOlderCluster({ definitions: "none" });
});
afterAll(() => cluster?.stop());

describe("what unedited manifests have at the compared places", () => {
  const COMPARED_WITH: Readonly<Record<string, string>> = { "v3.24": "v3.26", "v3.25": "v3.26", "v3.27": "v3.28" };
  const releases = releasesWithFacts();

  test("is recorded of the minor releases between those whose manifests the tool has", () => {
    expect(new Set(releases.map(minorOf))).toEqual(new Set(Object.keys(COMPARED_WITH)));
  });

  for (const { title, name: _, ...variant } of PUBLISHED_FILES)
    for (const release of releases) {
      const minor = COMPARED_WITH[minorOf(release)] ?? "";
      const liveObjects = async () => {
        const around = (await stockManifest(minor, variant)) ?? [];
        return stored(withPublishedFacts(around, { release, title }));
      };

      testNeeding(serverProblem)(`${release}, ${title}: nothing is asked about, kept or lost`, async () => {
        const stock = await comparedManifest(release, variant);
        const { obstacles, notes } = planned(await liveObjects(), release, variant, stock);

        expect(obstacles).toEqual([]);
        expect(notes.filter(isAboutEdits)).toEqual([]);
        const text = new RegExp(`^Compared with the published manifest of ${minor},.* of ${release};`);
        expect(notes).toContainEqual(expect.stringMatching(text));
      });

      testNeeding(serverProblem)(`${release}, ${title}: nor without a manifest to compare with`, async () => {
        const { obstacles, notes } = planned(await liveObjects(), release, variant, undefined);

        expect(obstacles.filter(isAboutWorkloads)).toEqual([]);
        expect(notes.filter(isAboutEdits)).toEqual([]);
      });
    }
});

describe("manifests as they were published", () => {
  const { first, last } = PUBLISHED_MINORS;
  for (const { title: _, name, ...variant } of PUBLISHED_FILES)
    testPublished(`${name}: nothing is asked about, kept or lost`, async () => {
      for (const tag of publishedTags(first, last)) {
        const live = await stored(publishedManifest(tag, name).filter(isCompared));
        const { obstacles, notes } = planned(live, tag, variant, await comparedManifest(tag, variant));

        expect({ tag, obstacles }).toEqual({ tag, obstacles: [] });
        expect({ tag, notes: notes.filter(isAboutEdits) }).toEqual({ tag, notes: [] });
      }
    });

  testNeeding(problem)("have what is recorded of them", () => {
    expect(readFileSync(FACTS_FILE, "utf8")).toBe(recordFacts());
  });
});

function minorOf(release: string): string {
  return release.replace(/\.\d+$/, "");
}

/** Containers beside ours, such as flannel, are always kept. */
function isAboutEdits(note: string): boolean {
  return /^(Kept: (spec|mount)|Not carried over)/.test(note);
}

/** Without a base, plugins that the release adds to the network config list are always asked about. */
function isAboutWorkloads({ message }: Obstacle): boolean {
  return /: (DaemonSet|Deployment) /.test(message);
}

/** As the server would store them: not by server-side apply, which refuses the variable that v3.15.0 had twice. */
async function stored(objects: readonly AnyObject[]): Promise<ReadonlyMap<string, Fields>> {
  const live = new Map<string, Fields>();
  for (const object of objects) {
    const path = objectPath(object);
    const request = {
      method: "POST" as const,
      path: path.slice(0, path.lastIndexOf("/")),
      query: { dryRun: "All" },
      body: JSON.stringify(object),
    };
    live.set(path, JSON.parse(requireOk(await cluster.client.request(request), request)));
  }
  return live;
}

function planned(
  live: ReadonlyMap<string, Fields>,
  version: string,
  variant: StockVariant,
  stock: ComparedManifest | undefined,
) {
  const { datastore, network } = variant;
  const facts = {
    method: { kind: "manifest", network },
    ...{ datastore, version, target: VERSION, orchestratorVersion: "v1.34.0", allowsSourceSpoofing: false },
  } as Facts;
  const release = {
    version: VERSION,
    manifest: (wanted: StockVariant) => variantObjects(wanted, VERSION),
  } as unknown as TargetRelease;
  return wantedManifest({
    ...{ live, daemonSet: daemonSetOf(live) ?? {}, facts, release, stock },
    options: { onConflict: "fail" },
  });
}
