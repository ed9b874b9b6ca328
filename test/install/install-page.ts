/** Types the commands of docs/install.md where an administrator has kubectl and a clone of this repository. */
import { existsSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BareCluster } from "../support/bare-cluster.ts";
import { type DocsPage, openDocsPage } from "../support/docs-page.ts";
import { kubeProgram } from "../support/kube-apiserver.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";

const ROOT = join(import.meta.dir, "../..");

/** The image is on the nodes already. */
export function openInstallPage(): DocsPage {
  return openDocsPage("install.md", { without: /^(make|ctr) .*$/gm });
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
  if (!existsSync(link)) symlinkSync(join(ROOT, "deploy"), link);
  const own = [dirname(kubeProgram("kubectl")), join(ROOT, "dist/bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  const path = programs === undefined ? own : [programs, ...own];
  const environment = { KUBECONFIG: server.adminKubeconfig, PATH: path.join(":"), HOME: host.directory };
  return page.type(title, { host, environment, replacing: { IMAGE: AGNHOST_IMAGE, ...replacing } });
}
