/** Rule 4: a release from before v3.23 is in another namespace than the operator; Helm takes its objects over if they name the new one. */
import type { ChartRelease } from "../../engine/facts.ts";
import { restoreBackedUp } from "../../engine/restore-objects.ts";
import type { PlannedChange, PlanningSite, Step } from "../../engine/step.ts";
import { movingRelease, releaseRecords, valuesOf } from "../../helm-releases.ts";
import { missingMarks, type ReleaseObject, releaseObjects } from "./release-objects.ts";

export const releaseOwnershipStep: Step = {
  name: "release-ownership",
  title: "Mark the objects of the chart for their new namespace",
  rule: 4,
  why: "Helm refuses objects that belong to a release of another namespace.",
  async plan(site) {
    const release = movingRelease(site);
    if (release === undefined) return undefined;
    const all = await objectsOf(site, release);
    const changes = all.flatMap((object) => changeOf(object, release) ?? []);
    if (changes.length === 0) return undefined;
    return {
      step: this.name,
      changes,
      obstacles: [],
      notes: all.filter(({ live }) => live === undefined).map(({ what }) => `${what}: there is none; skipped`),
      estimatedSeconds: 2,
      data: {},
    };
  },
  async remaining(site) {
    const release = movingRelease(site);
    if (release === undefined) return [];
    const all = await objectsOf(site, release);
    return all.flatMap((object) => (changeOf(object, release) === undefined ? [] : [`mark ${object.what}`]));
  },
  async act(site) {
    const release = movingRelease(site);
    for (const { path, live } of release === undefined ? [] : await objectsOf(site, release)) {
      const marks = live === undefined || release === undefined ? undefined : missingMarks(live, release.name);
      if (marks !== undefined) await site.objects.patch(path, marks);
    }
  },
  rollback: (site, { changes }) =>
    restoreBackedUp(
      site,
      changes.flatMap(({ path }) => path ?? []),
    ),
};

async function objectsOf({ objects, release: target }: PlanningSite, release: ChartRelease) {
  const [newest] = await releaseRecords(objects, release);
  return releaseObjects(objects, target, newest === undefined ? {} : valuesOf(newest));
}

function changeOf({ what, path, live }: ReleaseObject, { name }: ChartRelease): PlannedChange | undefined {
  const marks = live === undefined ? undefined : missingMarks(live, name);
  return marks === undefined ? undefined : { action: "update", what, path, diff: JSON.stringify(marks.metadata) };
}
