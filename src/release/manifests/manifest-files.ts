/**
 * The manifests that `make release` writes to `dist/manifests`, each one file that `kubectl apply --server-side` takes. They
 * are not in git: each repeats the definitions.
 */

import { identity } from "../../identity.ts";
import { VERSION } from "../../version.ts";
import { formatYaml } from "../../yaml.ts";
import { allCrdObjects, crdObjects } from "../crds/released-crds.ts";
import type { KubeObject } from "../kube-object.ts";
import { servedBy } from "../older-servers.ts";
import { FIRST_SERVER, FIRST_WITH_EVERYTHING } from "../supported-servers.ts";
import { defaultImage } from "../workloads/image.ts";
import { CONSOLE_HOSTS } from "../workloads/names.ts";
import { operatorObjects } from "./operator.ts";
import {
  consoleManifestObjects,
  flowObjects,
  type ManifestVariant,
  uninstallObjects,
  variantNotes,
  variantObjects,
} from "./variants.ts";

interface Variant extends ManifestVariant {
  readonly title: string;
}

const { product, title: name } = identity;
const VARIANTS: Readonly<Record<string, Variant>> = {
  [product]: {
    datastore: "kubernetes",
    network: "own",
    title: `${name} for networking and policy, with the Kubernetes API as its datastore.`,
  },
  [`${product}-policy-other-network`]: {
    datastore: "kubernetes",
    network: "other",
    title: `${name} for policy beside another networking plugin, with the Kubernetes API as its datastore.`,
  },
  [`${product}-policy-only`]: {
    datastore: "kubernetes",
    network: "fabric",
    title: `${name} for policy on a network that routes the ranges of the Nodes itself (advanced); the plugin is host-local IPAM without routes.`,
  },
  [`${product}-etcd`]: {
    datastore: "etcd",
    network: "own",
    title: `${name} for networking and policy, with etcd as its datastore.`,
  },
  [`${product}-etcd-policy-other-network`]: {
    datastore: "etcd",
    network: "other",
    title: `${name} for policy beside another networking plugin, with etcd as its datastore.`,
  },
};

/** By the names of their files. */
export function manifestFiles(): Readonly<Record<string, () => string>> {
  const operator = [
    `The operator, which installs ${name} as the resource Installation says. Apply operator-crds.yaml first.`,
  ];
  const uninstall = [
    `Removes ${name} from every node, after a manifest without the operator was deleted. When all its pods are ready, delete it too.`,
  ];
  const flows = [
    `The API of flows, in addition to a manifest without the operator. Then restart the controllers, and set flows to Enabled in NodeAgentConfiguration default; see docs/flows.md.`,
  ];
  const webConsole = (datastore: string) => [
    `The web console, in addition to a manifest without the operator whose datastore is ${datastore}. Then restart the controllers,`,
    `which make its certificate: for the names of its Service, and for those in the annotation ${CONSOLE_HOSTS}; see docs/console.md.`,
  ];
  const definitions = [`All kinds that the operator and ${name} need.`];
  const kinds = allCrdObjects();
  return {
    ...earlierFiles({
      "operator-crds.yaml": () => manifest([...definitions, ...EARLIER], servedBy(FIRST_SERVER, kinds)),
    }),
    "operator-crds.yaml": () => manifest(definitions, kinds),
    "operator.yaml": () => manifest(operator, operatorObjects({ image: defaultImage(VERSION) })),
    [`${product}-flows.yaml`]: () => manifest(flows, flowObjects()),
    [`${product}-console.yaml`]: () =>
      manifest(webConsole("the Kubernetes API"), consoleManifestObjects("kubernetes", VERSION)),
    [`${product}-etcd-console.yaml`]: () => manifest(webConsole("etcd"), consoleManifestObjects("etcd", VERSION)),
    [`${product}-uninstall.yaml`]: () => manifest(uninstall, uninstallObjects(VERSION)),
    ...variantFiles((variant) => textOf(variant)),
    ...earlierFiles(variantFiles((variant) => textOf(variant, { server: FIRST_SERVER, notes: EARLIER }))),
  };
}

type Files = Readonly<Record<string, () => string>>;

/** For API servers that cannot serve everything (src/release/older-servers.ts): what the first of them can. */
const EARLIER = [
  `For orchestrators from ${FIRST_SERVER} to before ${FIRST_WITH_EVERYTHING}: without validation rules and admission policies; see docs/older-orchestrators.md.`,
];

function earlierFiles(files: Files): Files {
  return Object.fromEntries(Object.entries(files).map(([file, text]) => [`older/${file}`, text]));
}

function variantFiles(textFor: (variant: Variant) => string): Files {
  return Object.fromEntries(
    Object.entries(VARIANTS).map(([file, variant]) => [`${file}.yaml`, () => textFor(variant)]),
  );
}

/** Settings come first, definitions before the pods that need them. With etcd, the orchestrator's API stores nothing. */
function textOf(
  variant: Variant,
  { server = FIRST_WITH_EVERYTHING, notes: more = [] as readonly string[] } = {},
): string {
  const { settings, components } = variantObjects(variant, VERSION);
  const definitions = variant.datastore === "etcd" ? [] : crdObjects();
  const notes = [variant.title, ...variantNotes(variant), ...more];
  return [manifest(notes, settings), ...servedBy(server, [...definitions, ...components]).map(formatYaml)].join(
    "---\n",
  );
}

function manifest(notes: readonly string[], objects: readonly KubeObject[]): string {
  const lines = [...notes, "Generated by `make release`; see docs/manifests.md."];
  return `${lines.map((line) => `# ${line}\n`).join("")}${objects.map(formatYaml).join("---\n")}`;
}
