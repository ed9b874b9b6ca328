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

export function typeOnPage(
  page: DocsPage,
  title: string,
  { host, server }: BareCluster,
  replacing: Readonly<Record<string, string>> = {},
): Promise<string> {
  const link = host.view(join(host.directory, "deploy"));
  if (!existsSync(link)) symlinkSync(join(ROOT, "deploy"), link);
  const path = [dirname(kubeProgram("kubectl")), join(ROOT, "dist/bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  const environment = { KUBECONFIG: server.adminKubeconfig, PATH: path.join(":") };
  return page.type(title, { host, environment, replacing: { IMAGE: AGNHOST_IMAGE, ...replacing } });
}
