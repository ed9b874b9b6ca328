/**
 * What the manifests of some releases have at the places that an upgrade compares, one fact per line of `published-facts.jsonl`,
 * recorded from a clone of their repository (`record-published-facts.process.ts`). It shows without the clone that nothing is
 * asked about installations which were not edited: unlike `src/upgrade/published/published-values.ts`, it is not a part of the product.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CARRIED_POD_FIELDS } from "../../src/upgrade/manifest-install/carried-places.ts";
import { withProductNames } from "../../src/upgrade/published/stock-manifest.ts";
import type { AnyObject } from "./older-cluster/former-object.ts";
import { PUBLISHED_FILES, publishedTags, publishedTemplate } from "./published-manifests.ts";

/** Minor releases of v3 whose manifests the product does not have: real clusters of them were asked about their own values. */
const RECORDED_MINORS = [24, 25, 27];

export const FACTS_FILE = join(import.meta.dir, "published-facts.jsonl");

/** A value at a place, with placeholders for the names of the product. */
interface Fact {
  readonly kind: string;
  /** `spec.template.spec.containers[(product)-node].env` */
  readonly path: string;
  /** The member of an object, or what tells the item of a list apart. */
  readonly item?: string;
  readonly value: unknown;
}

/** A fact, and what has it: these files (`own own-typha`) of these releases (`v3.24.0 v3.24.6`). Absent: all of them. */
interface FactLine extends Fact {
  readonly releases?: string;
  readonly files?: string;
}

const POD = "spec.template.spec";
const AGENT = `${POD}.containers[(product)-node]`;
const CONTROLLERS = `${POD}.containers[(product)-kube-controllers]`;
const METADATA = ["metadata", "spec.template.metadata"].flatMap((path) => [`${path}.labels`, `${path}.annotations`]);
const POD_FIELDS = [...CARRIED_POD_FIELDS, "securityContext"].map((name) => `${POD}.${name}`);
const CONTAINER_FIELDS = [
  ...["image", "command", "args", "resources", "securityContext", "envFrom"],
  ...["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"],
];
const fieldsOf = (container: string) => CONTAINER_FIELDS.map((name) => `${container}.${name}`);

interface Places {
  readonly values: readonly string[];
  /** Objects whose members are compared one by one. */
  readonly members: readonly string[];
  /** Lists, by the field that tells their items apart. */
  readonly lists: Readonly<Record<string, string>>;
}

const COMPARED: Readonly<Record<string, Places>> = {
  DaemonSet: {
    values: ["spec.updateStrategy", ...POD_FIELDS, ...fieldsOf(AGENT)],
    members: METADATA,
    lists: {
      [`${POD}.volumes`]: "name",
      [`${AGENT}.env`]: "name",
      [`${AGENT}.volumeMounts`]: "mountPath",
      [`${POD}.initContainers[install-cni].env`]: "name",
    },
  },
  Deployment: { values: [...POD_FIELDS, ...fieldsOf(CONTROLLERS)], members: METADATA, lists: {} },
  ConfigMap: { values: [], members: ["data"], lists: {} },
};

/** Typha has a Deployment, too. */
export function isCompared({ kind, metadata }: AnyObject): boolean {
  return kind === "Deployment" ? metadata.name.endsWith("-kube-controllers") : COMPARED[kind] !== undefined;
}

/** What the file has to contain, from the clone. */
export function recordFacts(): string {
  const tags = RECORDED_MINORS.flatMap((minor) => publishedTags(minor, minor));
  const found = tags.flatMap((release) =>
    PUBLISHED_FILES.flatMap(({ name, title }) => {
      const facts = publishedTemplate(release, name).filter(isCompared).flatMap(factsOf);
      return facts.map((fact) => ({ fact: JSON.stringify(fact), release, title }));
    }),
  );
  const lines: readonly FactLine[] = [...Map.groupBy(found, ({ fact }) => fact)].flatMap(([fact, all]) => {
    const byRelease = Map.groupBy(all, ({ release }) => release);
    const byFiles = Map.groupBy(byRelease, ([, its]) => its.map(({ title }) => title).join(" "));
    return [...byFiles].map(([files, its]) => ({
      ...JSON.parse(fact),
      ...(its.length === tags.length ? {} : { releases: its.map(([release]) => release).join(" ") }),
      ...(files.split(" ").length === PUBLISHED_FILES.length ? {} : { files }),
    }));
  });
  const order = ({ kind, path, item, releases, files }: FactLine) => [kind, path, item, releases, files].join(" ");
  const sorted = lines.toSorted((one, other) => (order(one) < order(other) ? -1 : 1));
  return sorted.map((line) => `${JSON.stringify(line)}\n`).join("");
}

function factsOf(object: AnyObject): readonly Fact[] {
  const { kind } = object;
  const { values, members, lists } = placesOf(kind);
  const at = (path: string) => {
    const [parent, name] = placeIn(object, path);
    return parent[name];
  };
  const facts = [
    ...values.map((path) => ({ kind, path, value: at(path) })),
    ...members.flatMap((path) =>
      Object.entries(at(path) ?? {}).map(([item, value]) => ({ kind, path, item, value: onOneLine(value) })),
    ),
    ...Object.entries(lists).flatMap(([path, key]) =>
      (at(path) ?? []).map(({ [key]: item, ...value }: AnyObject) => ({ kind, path, item, value })),
    ),
  ];
  return facts.filter(({ value }) => value !== undefined);
}

/** The network config, which has placeholders that are not JSON. */
function onOneLine(value: unknown): string {
  return String(value).replaceAll(/\s+/g, " ").trim();
}

/** The releases of the file: each has a fact of its own, its image. */
export function releasesWithFacts(): readonly string[] {
  return [...new Set(factLines().flatMap(({ releases }) => releases?.split(" ") ?? []))].sort();
}

/** The compared ones of these objects, with what this file of this release has at the compared places. */
export function withPublishedFacts(
  objects: readonly AnyObject[],
  { release, title }: { readonly release: string; readonly title: string },
): readonly AnyObject[] {
  const isAmong = (list: string | undefined, word: string) => list === undefined || list.split(" ").includes(word);
  const isMeant = ({ releases, files }: FactLine) => isAmong(releases, release) && isAmong(files, title);
  const facts = factLines().filter(isMeant);
  return objects.filter(isCompared).map((object) => {
    const changed = structuredClone(object);
    lay(changed, (path) => facts.filter((each) => each.kind === object.kind && each.path === withProductNames(path)));
    return changed;
  });
}

/** What the object has at the compared places goes. */
function lay(object: AnyObject, factsAt: (path: string) => readonly Fact[]): void {
  const { values, members, lists } = placesOf(object.kind);
  const set = (path: string, value: unknown) => {
    const [parent, name] = placeIn(object, withProductNames(path));
    if (value === undefined) delete parent[name];
    else parent[name] = value;
  };
  for (const path of values) set(path, factsAt(path)[0]?.value);
  for (const path of members) {
    const facts = factsAt(path);
    set(path, facts.length === 0 ? undefined : Object.fromEntries(facts.map(({ item, value }) => [item, value])));
  }
  for (const [path, key] of Object.entries(lists))
    set(
      path,
      factsAt(path).map(({ item, value }) => ({ [key]: item, ...(value as object) })),
    );
}

function factLines(): readonly FactLine[] {
  const lines = withProductNames(readFileSync(FACTS_FILE, "utf8")).split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

function placesOf(kind: string): Places {
  return COMPARED[kind] ?? { values: [], members: [], lists: {} };
}

/** The object that has the last name of the path. What is in brackets is the name of a list's item. */
function placeIn(object: AnyObject, path: string): readonly [parent: AnyObject, name: string] {
  const steps = path.split(".");
  const parent = steps.slice(0, -1).reduce((value: AnyObject, step) => {
    const [field = "", item] = step.split(/[[\]]/);
    const inner = value[field] ?? [];
    return (item === undefined ? inner : inner.find(({ name }: AnyObject) => name === item)) ?? {};
  }, object);
  return [parent, steps.at(-1) ?? ""];
}
