/** The conformance tests of `sigs.k8s.io/network-policy-api` against a cluster, and what their pods need. */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Built, partIfBuilt } from "../parts/build.ts";
import type { Host } from "./host.ts";
import { kubeProgram } from "./kube-apiserver.ts";
import { fillRootfs, writeTestImage } from "./rootfs.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

/** As their manifests name it. */
const IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.45";
const DEFINITION = "policy.networking.k8s.io_clusternetworkpolicies.yaml";

const LIMIT_MINUTES = 60;

const built: Built = partIfBuilt("network-policy-api");

/** Why they cannot run here; undefined if they can. */
export function conformanceProblem(): string | undefined {
  return "path" in built ? undefined : built.missing;
}

function partFile(name: string): string {
  if ("missing" in built) throw new Error(built.missing);
  return join(built.path, name);
}

/** The definition of ClusterNetworkPolicy, with the experimental fields. */
export function clusterPolicyDefinition(): string {
  return readFileSync(partFile(DEFINITION), "utf8");
}

/** The archive of the image of their pods; it exists until it is disposed. */
export async function conformanceImage(): Promise<Disposable & { readonly archive: string }> {
  const folder = temporaryDirectory("conformance");
  const rootfs = join(folder.path, "rootfs");
  mkdirSync(rootfs);
  fillRootfs(rootfs);
  // Their commands are lines of bash.
  writeProgram(join(rootfs, "bin/bash"), '#!/bin/sh\nexec /bin/sh "$@"\n');
  for (const [from, to] of [
    [kubeProgram("agnhost"), "agnhost-upstream"],
    [partFile("agnhost"), "agnhost"],
  ] as const) {
    copyFileSync(from, join(rootfs, to));
    chmodSync(join(rootfs, to), 0o755);
  }
  const archive = join(folder.path, "agnhost.tar");
  await writeTestImage({ name: IMAGE, rootfs, entrypoint: ["/agnhost"], command: ["pause"], archive });
  rmSync(rootfs, { recursive: true });
  return { archive, [Symbol.dispose]: () => folder.remove() };
}

function writeProgram(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o755);
}

export type Outcome = "PASS" | "FAIL" | "SKIP";

export interface ConformanceRun {
  /** Of each test and subtest, by its name. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly log: string;
}

/** `wanted`: a regular expression of the names of tests. */
export async function runConformance(
  host: Host,
  { kubeconfig, wanted }: { readonly kubeconfig: string; readonly wanted: string },
): Promise<ConformanceRun> {
  const command = [
    partFile("conformance"),
    ...["-test.v", `-test.timeout=${LIMIT_MINUTES}m`, `-test.run=^TestConformance$/${wanted}`, "-all-features"],
  ];
  const { stdout, stderr } = await host.run(command, {
    environment: { KUBECONFIG: kubeconfig },
    limitMilliseconds: LIMIT_MINUTES * 60_000,
  });
  const log = `${stdout}${stderr}`;
  const lines = log.matchAll(/^\s*--- (PASS|FAIL|SKIP): TestConformance\/(.+) \([\d.]+s\)$/gm);
  return { outcomes: new Map(Array.from(lines, ([, outcome, name = ""]) => [name, outcome as Outcome])), log };
}
