/** The manual pages of an installation, as they are installed: compressed, and always to the same bytes. Pure. */
import { gzipSync } from "node:zlib";
import { nodeUsage } from "../../src/bin/node-usage.ts";
import { programNames } from "../../src/bin/programs.ts";
import { INSTALLED_LOG_FILE, NETWORK_CONFIG_DIRECTORY } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { adminParts } from "./admin-page.ts";
import { type ManualPage, manualPage } from "./manual-page.ts";
import { usageParts } from "./usage-page.ts";

const { product, title, adminTool, nodeAgent, stateDirectory } = identity;
const source = `${title} ${VERSION}`;

/** By their paths below `share/man`, without the ending of the compression. */
export function manualPages(): Readonly<Record<string, string>> {
  const pages = [toolPage(), agentPage(), pluginPage()];
  return Object.fromEntries(
    pages.map((page) => [`man${page.section}/${page.name}.${page.section}`, manualPage(withOthers(page, pages))]),
  );
}

/** As `gzip -9n`: without a name and a time. */
export function compressed(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(gzipSync(text, { level: 9 }));
}

function withOthers(page: ManualPage, all: readonly ManualPage[]): ManualPage {
  const others = all.filter(({ name }) => name !== page.name).map(({ name, section }) => `${name}(${section})`);
  const text = `${others.join(", ")}; the pages in /usr/share/doc/${product}, if the package is installed.`;
  return { ...page, parts: [...page.parts, { heading: "See also", blocks: [{ kind: "paragraph", text }] }] };
}

function toolPage(): ManualPage {
  return { name: adminTool, section: 1, source, summary: `manage ${title} networks`, parts: adminParts() };
}

function agentPage(): ManualPage {
  return { name: nodeAgent, section: 8, source, summary: `node agent of ${title}`, parts: usageParts(nodeUsage()) };
}

function pluginPage(): ManualPage {
  const { plugin, ipam, hostLocal, portmap, bandwidth } = programNames(identity);
  return {
    name: plugin,
    otherNames: [ipam, hostLocal, portmap, bandwidth],
    section: 8,
    source,
    summary: `CNI plugins of ${title}`,
    parts: [
      {
        heading: "Synopsis",
        blocks: [{ kind: "lines", lines: [`CNI_COMMAND=COMMAND CNI_…=… ${plugin} < CONFIG`, `${plugin} -v`] }],
      },
      {
        heading: "Description",
        blocks: [
          {
            kind: "paragraph",
            text: "Container runtimes start these programs as the CNI specification says: a network config on stdin, the command and the container in the environment, the result or an error as JSON on stdout.",
          },
          { kind: "item", term: plugin, text: "connects containers by veth and routes, without a bridge" },
          { kind: "item", term: ipam, text: "assigns addresses from the pools in the datastore" },
          { kind: "item", term: hostLocal, text: "assigns addresses from ranges in the network config" },
          { kind: "item", term: portmap, text: "publishes ports of containers on the host; chained" },
          { kind: "item", term: bandwidth, text: "limits the rates of containers; chained" },
          { kind: "paragraph", text: `"${adminTool} config check FILE" checks a network config.` },
        ],
      },
      {
        heading: "Environment",
        blocks: [
          { kind: "item", term: "CNI_COMMAND", text: "ADD, DEL, CHECK, STATUS, GC or VERSION" },
          { kind: "item", term: "CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME", text: "the container and its interface" },
          { kind: "item", term: "CNI_ARGS", text: "further arguments, such as IP=ADDRESS" },
          { kind: "item", term: "CNI_PATH", text: "where other plugins are" },
        ],
      },
      {
        heading: "Files",
        blocks: [
          { kind: "item", term: NETWORK_CONFIG_DIRECTORY, text: "network configs of this host" },
          { kind: "item", term: stateDirectory, text: "the embedded datastore, and the name of this node" },
          { kind: "item", term: INSTALLED_LOG_FILE, text: "log" },
        ],
      },
    ],
  };
}
