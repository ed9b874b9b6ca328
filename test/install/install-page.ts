/** Types the commands of docs/install.md where an administrator has kubectl and a clone of this repository. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { IMAGE_TARGETS, imageArchive } from "../../scripts/image/build-image.ts";
import { writeManifests } from "../../scripts/release/manifests-and-chart.ts";
import type { BareCluster, BareNode } from "../support/bare-cluster.ts";
import { type DocsPage, openDocsPage } from "../support/docs-page.ts";
import { kubeProgram } from "../support/kube-apiserver.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";
import type { ProductImage } from "../support/product-image.ts";

const ROOT = join(import.meta.dir, "../..");

/** The image is built already, and `typeOnPage()` writes what `make release` writes. */
export function openInstallPage(): DocsPage {
  return openDocsPage("install.md", { without: /^make .*$/gm });
}

/** The targets of `make` on the page that the Makefile does not have. */
export function unknownMakeTargets(): readonly string[] {
  const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
  const used = [...read("docs/install.md").matchAll(/^make (\S+)|`make (\S+)`/gm)].map(
    ([, one, other]) => one ?? other,
  );
  const known = [...read("Makefile").matchAll(/^([\w-]+):/gm)].map(([, target]) => target);
  return used.flatMap((target) => (target === undefined || known.includes(target) ? [] : [target]));
}

/** Loads the image on a node as the page does, from the files that `make image` writes. */
export function loadImageOnPage(page: DocsPage, { host }: BareNode, { archive }: ProductImage): Promise<string> {
  for (const [target] of IMAGE_TARGETS) {
    const link = host.view(join(host.directory, imageArchive("dist", target)));
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(archive, link);
  }
  return page.type("The image", { host });
}

interface Typing {
  /** What the reader writes instead of an example in the page. */
  readonly replacing?: Readonly<Record<string, string>>;
  /** A directory with other programs that the reader has. */
  readonly programs?: string;
}

export function typeOnPage(
  page: DocsPage,
  title: string,
  { host, server }: BareCluster,
  { replacing = {}, programs }: Typing = {},
): Promise<string> {
  const link = host.view(join(host.directory, "deploy"));
  if (!existsSync(link)) {
    symlinkSync(join(ROOT, "deploy"), link);
    writeManifests(host.view(join(host.directory, "dist/manifests")));
  }
  const own = [dirname(kubeProgram("kubectl")), join(ROOT, "dist/bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  const path = programs === undefined ? own : [programs, ...own];
  const environment = { KUBECONFIG: server.adminKubeconfig, PATH: path.join(":"), HOME: host.directory };
  return page.type(title, { host, environment, replacing: { IMAGE: AGNHOST_IMAGE, ...replacing } });
}
