/**
 * The manifests that earlier releases published, from a clone of their repository that the environment names: none of their
 * files is in this repository. Since v3.24 they are files of a tag; before, templates of Helm.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { withProductNames } from "../../src/upgrade/published/stock-manifest.ts";
import { partIfBuilt } from "../parts/build.ts";
import type { AnyObject } from "./older-cluster/former-object.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

/** Names a directory of git with the tags `v3.15.0` … of the earlier releases. */
const REPOSITORY = "PUBLISHED_MANIFESTS_REPOSITORY";
/** What the product is called there. */
const FORMER_PRODUCT = "calico";
const FORMER_GROUP = "projectcalico.org";
const FIRST_WITH_FILES = 24;

/** `title`: without the name of the product. */
export const PUBLISHED_FILES = [
  { title: "own", name: FORMER_PRODUCT, datastore: "kubernetes", network: "own" },
  { title: "own-typha", name: `${FORMER_PRODUCT}-typha`, datastore: "kubernetes", network: "own" },
  { title: "own-vxlan", name: `${FORMER_PRODUCT}-vxlan`, datastore: "kubernetes", network: "own" },
  { title: "fabric", name: `${FORMER_PRODUCT}-policy-only`, datastore: "kubernetes", network: "fabric" },
  { title: "other", name: "canal", datastore: "kubernetes", network: "other" },
  { title: "etcd-own", name: `${FORMER_PRODUCT}-etcd`, datastore: "etcd", network: "own" },
  { title: "etcd-other", name: "canal-etcd", datastore: "etcd", network: "other" },
] as const;

/** Why they cannot be had; `undefined` if they can. */
export function publishedManifestsProblem(): string | undefined {
  if (process.env[REPOSITORY] === undefined) return `${REPOSITORY} names no clone of the earlier releases' repository`;
  const helm = partIfBuilt("helm3");
  return "missing" in helm ? helm.missing : undefined;
}

/** The first and the last patch of each minor release. */
export function publishedTags(first: number, last: number): readonly string[] {
  const tags = git("tag", "--list", "v3.*", "--sort=version:refname")
    .split("\n")
    .filter((tag) => /^v3\.\d+\.\d+$/.test(tag));
  const minors = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return minors.flatMap((minor) => {
    const own = tags.filter((tag) => minorOf(tag) === minor);
    return [...new Set([own[0], own.at(-1)])].filter((tag) => tag !== undefined);
  });
}

/** Under the names of this product, with an etcd that exists. */
export function publishedManifest(tag: string, name: string): readonly AnyObject[] {
  return JSON.parse(withProductNames(JSON.stringify(publishedTemplate(tag, name))));
}

/** With placeholders for the names of the product, as `withProductNames` fills them in. */
export function publishedTemplate(tag: string, name: string): readonly AnyObject[] {
  const text = minorOf(tag) >= FIRST_WITH_FILES ? git("show", `${tag}:manifests/${name}.yaml`) : rendered(tag, name);
  const renamed = text
    .replaceAll(FORMER_GROUP, "(apiGroup)")
    .replaceAll(FORMER_PRODUCT, "(product)")
    .replaceAll(`${FORMER_PRODUCT.toUpperCase()}_`, "(PREFIX)")
    .replaceAll("http://<ETCD_IP>:<ETCD_PORT>", "http://10.0.0.1:2379");
  const documents: unknown[] = [Bun.YAML.parse(renamed)];
  return documents.flat(2).filter((each) => each !== null && each !== undefined) as AnyObject[];
}

function minorOf(tag: string): number {
  return Number(tag.split(".")[1]);
}

function rendered(tag: string, name: string): string {
  const directory =
    git("ls-tree", "--name-only", tag, `${FORMER_PRODUCT}/manifests`) === "" ? "" : `${FORMER_PRODUCT}/`;
  const page = git("show", `${tag}:${directory}manifests/${name}.yaml`);
  const given = page
    .slice(page.indexOf("\n", page.indexOf("{% helm")), page.indexOf("{% endhelm"))
    .replace(/^.*%}/, "");
  const chart = `${directory}_includes/charts/${FORMER_PRODUCT}`;
  const directoryOfChart = temporaryDirectory("published");
  const place = directoryOfChart.path;
  try {
    const files = [chart, `lib${FORMER_PRODUCT}-go/config`].filter(
      (path) => git("ls-tree", "--name-only", tag, path) !== "",
    );
    const archive = run(["git", "-C", repository(), "archive", tag, ...files]);
    run(["tar", "--extract", "--directory", place], archive);
    const values = join(place, "values.json");
    writeFileSync(values, JSON.stringify(imageValues(tag)));
    const helm = partIfBuilt("helm3");
    const program = "path" in helm ? helm.path : "";
    const endpoints = "etcd.endpoints=http://<ETCD_IP>:<ETCD_PORT>";
    const command = [program, "template", "published", join(place, chart), "-f", values, "-f", "-", "--set", endpoints];
    return new TextDecoder().decode(run(command, new TextEncoder().encode(given)));
  } finally {
    directoryOfChart.remove();
  }
}

/** Their site filled them in. */
function imageValues(tag: string): object {
  const image = (name: string) => ({ image: `docker.io/${FORMER_PRODUCT}/${name}`, tag });
  return {
    datastore: "kubernetes",
    etcd: { endpoints: null, tls: { crt: null, ca: null, key: null } },
    network: FORMER_PRODUCT,
    ipam: `${FORMER_PRODUCT}-ipam`,
    node: image("node"),
    typha: image("typha"),
    cni: image("cni"),
    kubeControllers: image("kube-controllers"),
    flannel: { image: "quay.io/coreos/flannel", tag: "v0.14.0" },
    flannelMigration: image("flannel-migration-controller"),
    dikastes: image("dikastes"),
    flexvol: image("pod2daemon-flexvol"),
    calicoctl: image("ctl"),
  };
}

function git(...words: readonly string[]): string {
  return new TextDecoder().decode(run(["git", "-C", repository(), ...words])).trim();
}

function repository(): string {
  return process.env[REPOSITORY] ?? "";
}

function run(command: readonly string[], input?: Uint8Array): Uint8Array {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], input === undefined ? {} : { stdin: input });
  if (exitCode === 0) return stdout;
  throw new Error(`${command.slice(0, 4).join(" ")}: ${new TextDecoder().decode(stderr)}`);
}
